# Which RoPE chunks of each head stay rotated: one map layer × chunk per head, colour = order of the picks.
# $picks: block per head, lines = layers, columns = chunks, value = pick number from 1, NaN = not picked.
# panels, columns, rows, chunks, layers, layer_names, chunk_names, most_picks, heading, head_word

cells = map_cells(layers, chunks)
set multiplot
set label 1 heading at screen 12/page_width, 1 - 16/page_height left font heading_font(heading) tc rgb ink
set label 3 'RoPE chunk (0 rotates fastest)' at screen 0.5, 13/page_height center tc rgb ink
set label 4 'layer' at screen 12/page_width, 0.5 center rotate tc rgb ink
set border 15 lc rgb '#bbbbbb' lw 0.6
set grid front
unset grid
set tics scale 0.3
set xrange [-0.5 : chunks - 0.5]
set yrange [layers - 0.5 : -0.5]
set palette defined @picks_palette maxcolors most_picks
set cbrange [0.5 : most_picks + 0.5]
unset colorbox
left = 56.0
right = 82.0
top = 58.0
bottom = 48.0
gap_x = 14.0
gap_y = 26.0
width = (page_width - left - right - gap_x*(columns - 1))/columns
height = (page_height - top - bottom - gap_y*(rows - 1))/rows
do for [p = 0:panels - 1] {
  column = p % columns
  line = p / columns
  x = left + column*(width + gap_x)
  y = page_height - top - line*(height + gap_y) - height
  set lmargin at screen x/page_width
  set rmargin at screen (x + width)/page_width
  set bmargin at screen y/page_height
  set tmargin at screen (y + height)/page_height
  if (column == 0) { eval 'set ytics '.layer_names } else { set ytics ('' 0) }
  if (p + columns >= panels) { eval 'set xtics '.chunk_names } else { set xtics ('' 0) }
  set label 2 sprintf('%s %d', head_word, p) at screen x/page_width, screen (y + height + 9)/page_height left font ':Bold,10' tc rgb ink
  if (p == panels - 1) {
    set colorbox user origin screen 1 - 66/page_width, screen bottom/page_height size screen 12/page_width, screen (page_height - top - bottom)/page_height
    set cbtics 1, (most_picks > 6 ? ceil(most_picks / 6.0) : 1) scale 0
    set cblabel 'order of the pick' offset 0.2,0 tc rgb ink
  }
  plot $picks index p matrix @cells
  unset label 1
  unset label 3
  unset label 4
}
