# Milliseconds per token by length, prefill left and decoding right, one line per cache; the key below.
# $time: block per cache, rows (tokens, prefill, decode); curves, curve_title_1 …, x_low, x_high, length_tics, heading

set multiplot
set label 1 heading at screen 12/page_width, 1 - 16/page_height left font heading_font(heading) tc rgb ink
left = 70.0
gap = 70.0
foot = 62.0 + 16*curves
width = (page_width - left - 14 - gap)/2
set tmargin at screen 1 - 60/page_height
set bmargin at screen foot/page_height
set logscale x 2
set xrange [x_low : x_high]
eval 'set xtics '.length_tics
set xlabel 'tokens before' offset 0,0.4 tc rgb ink
set yrange [0 : *]
unset mytics
do for [p = 1:2] {
  x = left + (p - 1)*(width + gap)
  set lmargin at screen x/page_width
  set rmargin at screen (x + width)/page_width
  set label 2 (p == 1 ? 'Prefill' : 'Decoding') at graph 0.0, 1.06 left font ':Bold,10' tc rgb ink
  set ylabel 'ms a token' offset 0.6,0 tc rgb ink
  if (p == 1) { set key at screen left/page_width, screen (foot - 44)/page_height left top Left reverse maxcols 1 samplen 1.8 spacing 1.1 tc rgb ink } else { unset key }
  plot for [n = 1:curves] $time index (n - 1) using 1:(p == 1 ? $2 : $3) with linespoints lw 1.5 pt 7 ps 0.5 lc rgb series_color(n - 1) title value(sprintf('curve_title_%d', n))
  unset label 1
}
