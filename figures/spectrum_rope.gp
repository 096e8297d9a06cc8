# Keys before against keys after RoPE, a few layers. Each curve is the mean over heads; the band spans the heads.
# $power: block 2·(panel − 1) (before) and 2·(panel − 1) + 1 (after), rows (bin, mean, least, most); DC first, apart.
# panels, columns, rows, panel_title_1 …, heading, x_label, y_low, y_high, x_high, dc_position

set multiplot
set label 1 heading at screen 12/page_width, 1 - 16/page_height left font heading_font(heading) tc rgb ink
set label 3 x_label at screen 0.53, 14/page_height center tc rgb ink
set label 4 'power (squared units of the state)' at screen 12/page_width, screen 0.47 center rotate tc rgb ink
set logscale xy
set xrange [dc_position*0.8 : x_high]
set yrange [10**y_low : 10**y_high]
unset mxtics
unset mytics
left = 66/page_width
right = 0.985
top = 1 - 84/page_height
bottom = 54/page_height
gap_x = 0.014
gap_y = 30/page_height
width = (right - left - gap_x*(columns - 1)) / columns
height = (top - bottom - gap_y*(rows - 1)) / rows
set style fill transparent solid 0.22 noborder
set key at screen right, screen 1 - 34/page_height right top horizontal maxrows 1 samplen 2.2 tc rgb ink
do for [p = 1:panels] {
  column = (p - 1) % columns
  line = (p - 1) / columns
  set lmargin at screen left + column*(width + gap_x)
  set rmargin at screen left + column*(width + gap_x) + width
  set tmargin at screen top - line*(height + gap_y)
  set bmargin at screen top - line*(height + gap_y) - height
  if (column == 0) { set format y '10^{%T}' } else { set format y '' }
  if (p + columns > panels) {
    set xtics ('DC' dc_position, '1' 1, '10' 10, '100' 100, '1000' 1000, '10000' 10000, '100000' 100000)
  } else {
    set xtics ('' dc_position, '' 1, '' 10, '' 100, '' 1000, '' 10000, '' 100000)
  }
  set label 2 value(sprintf('panel_title_%d', p)) at graph 0.0, 1.06 left font ':Bold,10' tc rgb ink
  plot $power index (2*(p - 1)) every :::1 using 1:3:4 with filledcurves lc rgb blue, \
       $power index (2*(p - 1) + 1) every :::1 using 1:3:4 with filledcurves lc rgb orange, \
       $power index (2*(p - 1)) using 1:2 with lines lw 1.6 lc rgb blue title 'before RoPE', \
       $power index (2*(p - 1) + 1) using 1:2 with lines lw 1.6 lc rgb orange title 'after RoPE', \
       $power index (2*(p - 1)) every ::0:0:0:0 using 1:2 with points pt 7 ps 0.5 lc rgb blue, \
       $power index (2*(p - 1) + 1) every ::0:0:0:0 using 1:2 with points pt 6 ps 0.7 lw 1.5 lc rgb orange
  unset key
  unset label 1
  unset label 3
  unset label 4
}
