# Cosine similarity of two versions' DCT coefficients by layer: the lower half of the bins, the same without DC, the upper
# half, with 95 % intervals. One column per state, one row per group of documents.
# $similarity: three blocks per panel, row by row, rows (layer, mean, least, most); rows, row_title_1 …, row_low_1 …
# (end of the axis), columns, column_title_1 …, first_layer, last_layer, heading

set multiplot
set label 1 heading at screen 12/page_width, 1 - 16/page_height left font heading_font(heading) tc rgb ink
left = 84.0
gap = 24.0
top = 78.0
bottom = 46.0
gap_y = 34.0
width = (page_width - left - 14 - gap*(columns - 1))/columns
height = (page_height - top - bottom - gap_y*(rows - 1))/rows
band_title(n) = n == 0 ? 'lower half' : n == 1 ? 'lower without DC' : 'upper half'
set key at screen 1 - 14/page_width, screen 1 - 40/page_height right center maxrows 1 samplen 2.0 width -1 tc rgb ink
set style fill transparent solid 0.18 noborder
set xrange [first_layer - 0.5 : last_layer + 0.5]
do for [p = 0:rows*columns - 1] {
  line = p / columns
  column = p % columns
  x = left + column*(width + gap)
  y = page_height - top - line*(height + gap_y)
  low = value(sprintf('row_low_%d', line + 1))
  set lmargin at screen x/page_width
  set rmargin at screen (x + width)/page_width
  set tmargin at screen y/page_height
  set bmargin at screen (y - height)/page_height
  set yrange [low : 1 + 0.04*(1 - low)]
  set label 2 value(sprintf('column_title_%d', column + 1)).', '.value(sprintf('row_title_%d', line + 1)) at screen x/page_width, screen (y + 11)/page_height left font ':Bold,10' tc rgb ink
  if (line == rows - 1) { set xlabel 'layer' offset 0,0.5 tc rgb ink; set format x '%g' } else { unset xlabel; set format x '' }
  if (column == 0) { set label 3 'cosine similarity' at screen 14/page_width, screen (y - height/2)/page_height center rotate tc rgb ink; set format y '%g' } else { unset label 3; set format y '' }
  plot for [n = 0:2] $similarity index (3*p + n) using 1:3:4 with filledcurves lc rgb series_color(n), \
       for [n = 0:2] $similarity index (3*p + n) using 1:2 with linespoints lw 1.4 pt 7 ps 0.35 lc rgb series_color(n) title band_title(n)
  unset key
  unset label 1
}
