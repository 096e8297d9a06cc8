# Maps head × layer of the energy share in the lowest bins: one row of maps per kind of state, with DC left, without right.
# $share: block 2·(row − 1) (with DC), + 1 (without), lines = heads, columns = layers.
# rows, row_title_1 …, heads, layers, heading, layer_names (xtics list)

cells = map_cells(heads, layers)
set multiplot
set label 1 heading at screen 12/page_width, 1 - 16/page_height left font heading_font(heading) tc rgb ink
set border 0
unset grid
set tics scale 0
set xrange [-0.5 : layers - 0.5]
set yrange [heads - 0.5 : -0.5]
set ytics 0, (heads > 12 ? ceil(heads/8.0) : 1), heads - 1
set palette defined @viridis
set cbrange [0:1]
unset colorbox
left = 52.0
right = 92.0
top = 52.0
bottom = 42.0
gap_x = 16.0
gap_y = 24.0
width = (page_width - left - right - gap_x)/2
height = (page_height - top - bottom - gap_y*(rows - 1)) / rows
do for [p = 0:2*rows - 1] {
  column = p % 2
  line = p / 2
  x = left + column*(width + gap_x)
  y = page_height - top - line*(height + gap_y) - height
  set lmargin at screen x/page_width
  set rmargin at screen (x + width)/page_width
  set bmargin at screen y/page_height
  set tmargin at screen (y + height)/page_height
  set label 2 value(sprintf('row_title_%d', line + 1)).(column == 0 ? ', with DC' : ', without DC') at screen x/page_width, screen (y + height + 9)/page_height left font ':Bold,10' tc rgb ink
  if (line == rows - 1) { eval 'set xtics '.layer_names; set xlabel 'layer' offset 0,0.6 tc rgb ink } else { set xtics ('' 0); unset xlabel }
  if (column == 0) { set format y '%g'; set ylabel 'head' offset 0.4,0 tc rgb ink } else { set format y ''; unset ylabel }
  if (p == 2*rows - 1) {
    set colorbox user origin screen 1 - 78/page_width, screen bottom/page_height size screen 12/page_width, screen (page_height - top - bottom)/page_height
    set cbtics 0.25 format '%.2f'
    set cblabel share_label offset 0.6,0 tc rgb ink
  }
  plot $share index p matrix @cells
  unset label 1
}
