# KL divergence against bytes of many caches; the front as a line with labels.
# $cells: one block per method, rows (bytes in %, KL); $front: rows of the front; methods, method_1 …, labels,
# front_label_1 …, front_x_1 …, front_y_1 …, front_side_1 … (−1: left, 1: right), heading, x_low, y_low, y_high

set multiplot
set label 1 heading at screen 12/page_width, 1 - 16/page_height left font heading_font(heading) tc rgb ink
set lmargin at screen 74/page_width
set rmargin at screen 1 - 150/page_width
set tmargin at screen 1 - 40/page_height
set bmargin at screen 50/page_height
set logscale xy
set xrange [x_low : 100]
set yrange [y_low : y_high]
set mxtics 1
set xtics (2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100)
set format x '%g %%'
set format y '10^{%T}'
set xlabel 'bytes, share of the full cache (2 bytes a value)' offset 0,0.4 tc rgb ink
set label 2 'KL divergence from the full cache, nats a token' at screen 14/page_width, 0.5 center rotate by 90 tc rgb ink
set key at graph 1.02, graph 1.0 left top Left reverse samplen 0.8 spacing 1.15 tc rgb ink
sign(i) = int(word('7 5 9 11 13 4 6 8 10 12 2', (i - 1) % 11 + 1))
do for [n = 1:labels] {
  name = value(sprintf('front_label_%d', n))
  x = value(sprintf('front_x_%d', n))
  y = value(sprintf('front_y_%d', n))
  if (value(sprintf('front_side_%d', n)) < 0) {
    set label 10 + n name at x, y right offset -0.6,-0.55 font ',9' tc rgb ink
  } else {
    set label 10 + n name at x, y left offset 0.6,0.55 font ',9' tc rgb ink
  }
}
plot for [m = 1:methods] $cells index (m - 1) using 1:2 with points pt sign(m) ps 0.55 lw 1.2 lc rgb series_color(m - 1) title value(sprintf('method_%d', m)), \
     $front using 1:2 with lines lw 1.4 lc rgb ink title 'front'
