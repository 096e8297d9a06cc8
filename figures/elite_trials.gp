# Perplexity against r of caches of one size, J-LRD and S-LRD; the full cache and a GQA model of that size as dashed
# lines. $ppl: one block per series, rows (r, PPL); series, series_title_1 …, full, full_title, gqa (NaN: none), gqa_title,
# heading, x_low, x_high, y_low, y_high, r_tics, rank_tics (d_ckv at each r)

set multiplot
set label 1 heading at screen 12/page_width, 1 - 16/page_height left font heading_font(heading) tc rgb ink
set lmargin at screen 74/page_width
set rmargin at screen 1 - 222/page_width
set tmargin at screen 1 - 76/page_height
set bmargin at screen 46/page_height
set border 7 lc rgb '#555555' lw 0.8
set xrange [x_low : x_high]
set x2range [x_low : x_high]
eval 'set xtics '.r_tics
eval 'set x2tics '.rank_tics
set xlabel 'rotated chunks of a head, r' offset 0,0.4 tc rgb ink
set x2label 'rank of the latent, d_{ckv}' offset 0,-0.4 tc rgb ink
set logscale y
set yrange [y_low : y_high]
set mytics 1
steps = y_high / y_low < 10 ? '1 1.2 1.5 2 2.5 3 4 5 7' : '1 2 5'
set ytics (1)
do for [decade = 0:5] { do for [step in steps] { set ytics add (step * 10**decade) } }
set label 2 'perplexity, held out' at screen 14/page_width, 0.46 center rotate by 90 tc rgb ink
unset ylabel
set key at graph 1.03, graph 1.0 left top Left reverse samplen 1.8 spacing 1.15 tc rgb ink
plot for [s = 1:series] $ppl index (s - 1) using 1:2 with linespoints lw 1.6 pt (s == 1 ? 7 : 5) ps 0.6 lc rgb series_color(s - 1) title value(sprintf('series_title_%d', s)), \
     (gqa == gqa ? gqa : NaN) with lines dt 4 lw 1.2 lc rgb green title (gqa == gqa ? gqa_title : ''), \
     full with lines dt 2 lw 1.2 lc rgb muted title full_title
