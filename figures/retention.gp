# Perplexity relative to the unchanged model's against the share of the spectrum kept, one panel each for keys, values and
# both, one line per band with its 95 % interval.
# $ratio: block per panel and curve, rows (percent kept, ratio, least, most); panels, panel_title_1 …, curves,
# curve_title_1 …, y_low, y_high, heading

set multiplot
set label 1 heading at screen 12/page_width, 1 - 16/page_height left font heading_font(heading) tc rgb ink
left = 78.0
gap = 22.0
width = (page_width - left - 14 - gap*(panels - 1))/panels
set key at screen 1 - 14/page_width, screen 1 - 40/page_height right center maxrows 1 samplen 2.0 tc rgb ink
set style fill transparent solid 0.18 noborder
set tmargin at screen 1 - 76/page_height
set bmargin at screen 46/page_height
set xrange [0 : 103]
set xtics 25
set yrange [y_low : y_high]
set logscale y
unset mytics
steps = y_high/y_low < 1.5 ? '1 1.02 1.05 1.1 1.2 1.3' : y_high/y_low < 8 ? '1 1.2 1.5 2 3 4 5 7' : y_high/y_low < 100 ? '1 2 5' : '1'
set ytics (1)
do for [decade = 0:7] { do for [step in steps] { set ytics add (step * 10**decade) } }
set xlabel 'kept, % of the spectrum' offset 0,0.5 tc rgb ink
set label 3 'relative perplexity' at screen 14/page_width, 0.46 center rotate tc rgb ink
do for [p = 1:panels] {
  x = left + (p - 1)*(width + gap)
  b = curves*(p - 1)
  set lmargin at screen x/page_width
  set rmargin at screen (x + width)/page_width
  set label 2 value(sprintf('panel_title_%d', p)) at graph 0.0, 1.06 left font ':Bold,10' tc rgb ink
  if (p == 1) { set format y '%g' } else { set format y '' }
  plot for [n = 1:curves] $ratio index (b + n - 1) using 1:3:4 with filledcurves lc rgb series_color(n - 1), \
       for [n = 1:curves] $ratio index (b + n - 1) using 1:2 with linespoints lw 1.5 pt 7 ps 0.5 lc rgb series_color(n - 1) title value(sprintf('curve_title_%d', n)), \
       1 with lines dt 2 lw 1.1 lc rgb muted
  unset key
  unset label 1
  unset label 3
}
