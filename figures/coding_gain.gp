# Bits a real that each step of a transform coder saves, by layer, stacked; one panel per state.
# $gain: block per panel, rows (layer, 0, cumulative gains of the six steps); panels, panel_title_1 …, layers, layer_names,
# block (words of the last step), heading

set multiplot
set label 1 heading at screen 12/page_width, 1 - 16/page_height left font heading_font(heading) tc rgb ink
unset mytics
set grid noxtics ytics
set xrange [-0.7 : layers - 0.3]
set yrange [0 : *]
set style fill solid 1 noborder
eval 'set xtics '.layer_names
left = 58.0
right = 14.0
top = 74.0
bottom = 44.0
gap = 52.0
height = (page_height - top - bottom - gap*(panels - 1))/panels
set lmargin at screen left/page_width
set rmargin at screen 1 - right/page_width
set label 3 'bits a real saved' at screen 14/page_width, screen (bottom + 0.5*(page_height - top - bottom))/page_height center rotate tc rgb ink
step_color(s) = word('#999999 '.sky.' '.blue.' '.green.' '.orange.' '.yellow, s)
step_name(s) = s == 1 ? 'mean' : s == 2 ? 'bits by channel' : s == 3 ? 'KLT of a head' : s == 4 ? 'KLT of the layer' : s == 5 ? 'K and V joint' : block
set key at screen 1 - right/page_width, screen 1 - 34/page_height right top horizontal maxrows 1 samplen 1 width -1 font ',9' tc rgb ink
do for [p = 1:panels] {
  y = page_height - top - (p - 1)*(height + gap) - height
  set bmargin at screen y/page_height
  set tmargin at screen (y + height)/page_height
  set label 2 value(sprintf('panel_title_%d', p)) at screen left/page_width, screen (y + height + 11)/page_height left font ':Bold,10' tc rgb ink
  if (p == panels) { set xlabel 'layer' offset 0,0.4 tc rgb ink }
  plot for [s = 1:6] NaN with boxes lc rgb step_color(s) title step_name(s), \
       for [s = 1:6] $gain index (p - 1) using 1:(0.5*(column(s + 1) + column(s + 2))):(0.39):(0.5*(column(s + 2) - column(s + 1))) with boxxyerror lc rgb step_color(s)
  unset key
  unset label 1
  unset label 3
}
