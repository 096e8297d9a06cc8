# Perplexity against the number of chunks C, one line per series, the unchanged model as a dashed line.
# $ppl: one block per series, rows (C, PPL); series, series_title_1 …, base (NaN: none), heading, x_low, x_high,
# chunk_tics

set multiplot
set label 1 heading at screen 12/page_width, 1 - 16/page_height left font heading_font(heading) tc rgb ink
set lmargin at screen 74/page_width
set rmargin at screen 1 - 178/page_width
set tmargin at screen 1 - 40/page_height
set bmargin at screen 46/page_height
set logscale x 2
set xrange [x_low : x_high]
eval 'set xtics '.chunk_tics
set xlabel 'chunks C' offset 0,0.4 tc rgb ink
set label 2 'perplexity' at screen 14/page_width, 0.5 center rotate by 90 tc rgb ink
unset ylabel
set offsets graph 0, graph 0, graph 0.06, graph 0.06
set key at graph 1.03, graph 1.0 left top Left reverse samplen 1.8 spacing 1.15 tc rgb ink
plot for [s = 1:series] $ppl index (s - 1) using 1:2 with linespoints lw 1.6 pt (s == 1 ? 7 : s == 2 ? 5 : s == 3 ? 9 : 4 + s) ps 0.6 lc rgb series_color(s - 1) title value(sprintf('series_title_%d', s)), \
     (base == base ? base : NaN) with lines dt 2 lw 1.2 lc rgb muted title (base == base ? 'unchanged model' : '')
