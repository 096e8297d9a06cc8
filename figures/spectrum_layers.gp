# One curve per layer, one panel per kind of state.
# $power: block (panel − 1)·layers + layer, rows (bin, power, the model's layer); DC first, apart.
# panels, layers, panel_title_1 …, y_low_1 …, y_high_1 … (decades), new_range_1 … (1: other decades than the panel before),
# heading, x_label, first_layer, last_layer, x_high, dc_position

set multiplot
set label 1 heading at screen 0.012, 0.955 left font heading_font(heading) tc rgb ink
set logscale xy
set format y '10^{%T}'
set xrange [dc_position*0.8 : x_high]
set xtics ('DC' dc_position, '1' 1, '10' 10, '100' 100, '1000' 1000, '10000' 10000, '100000' 100000)
set mxtics 1
unset mytics
set palette defined @viridis_lines
set cbrange [first_layer : last_layer > first_layer ? last_layer : first_layer + 1]
unset colorbox
set label 4 'power (squared units of the state)' at screen 0.012, 0.5 center rotate tc rgb ink
set label 3 x_label at screen (0.075 + 0.915)/2, 0.045 center tc rgb ink

left = 0.075
right = 0.905
gap = 0.032
label_gap = 0.036
wide_gaps = 0
do for [p = 2:panels] { wide_gaps = wide_gaps + value(sprintf('new_range_%d', p)) }
panel_width = (right - left - gap*(panels - 1) - label_gap*wide_gaps) / panels
at = left
do for [p = 1:panels] {
  new_range = value(sprintf('new_range_%d', p))
  if (p > 1) { at = at + panel_width + gap + label_gap*new_range }
  set lmargin at screen at
  set rmargin at screen at + panel_width
  set tmargin at screen 0.83
  set bmargin at screen 0.165
  set yrange [10**value(sprintf('y_low_%d', p)) : 10**value(sprintf('y_high_%d', p))]
  set label 2 value(sprintf('panel_title_%d', p)) at graph 0.0, 1.045 left font ':Bold,10' tc rgb ink
  if (new_range || p == 1) { set format y '10^{%T}' } else { set format y '' }
  if (p == panels) {
    set colorbox user origin screen right + 0.016, screen 0.165 size screen 0.013, screen 0.665
    set cblabel 'layer' offset 0.4,0 tc rgb ink
    set cbtics scale 0.4
  }
  plot for [n = 0:layers - 1] $power index ((p - 1)*layers + n) using 1:2:3 with lines lw 0.9 lc palette, \
       for [n = 0:layers - 1] $power index ((p - 1)*layers + n) every ::0:0:0:0 using 1:2:3 with points pt 7 ps 0.35 lc palette
  unset label 1
  unset label 3
}
