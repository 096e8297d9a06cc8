# Small multiples: one panel per (layer, head), one curve per kind of state. Layers fold into `groups` side by side.
# $power: block (panel − 1)·states + state, rows (bin, power, …); DC first, apart.
# $panel: rows (column, row, layer, head); panels, columns, rows, heads, groups, states, state_title_1 …,
# state_color_1 …, heading, x_label, y_low, y_high (decades), x_high, dc_position

set multiplot
set label 1 heading at screen 12/page_width, 1 - 16/page_height left font heading_font(heading) tc rgb ink
do for [s = 1:states] {
  key_x = (32 + (s - 1)*150)/page_width
  key_y = 1 - 42/page_height
  set arrow 10 + s from screen key_x - 20/page_width, screen key_y to screen key_x - 2/page_width, screen key_y nohead lw 2 lc rgb value(sprintf('state_color_%d', s))
  set label 10 + s value(sprintf('state_title_%d', s)) at screen key_x + 4/page_width, screen key_y left tc rgb ink
}
set label 5 x_label at screen 0.5, 12/page_height center tc rgb ink
set label 6 'power (squared units of the state)' at screen 10/page_width, 0.5 center rotate tc rgb ink

set logscale xy
set xrange [dc_position*0.7 : x_high]
set yrange [10**y_low : 10**y_high]
set border 15 lc rgb '#bbbbbb' lw 0.5
set tics scale 0.3 font ',7'
unset mxtics
unset mytics
set grid xtics ytics lc rgb '#eeeeee' lw 0.4 lt 1
# Labels stay off the panels' edges, where those of neighbours would meet.
y_step = y_high - y_low > 5 ? 2 : 1
y_names = ''
y_blanks = ''
do for [e = int(y_low) + 1 : int(y_high) - 1] {
  if (e % y_step == 0) {
    y_names = y_names.(strlen(y_names) ? ', ' : '').sprintf("'10^{%d}' 1e%d", e, e)
    y_blanks = y_blanks.(strlen(y_blanks) ? ', ' : '').sprintf("'' 1e%d", e)
  }
}

left = 52.0
right = 12.0
top = 62.0
bottom = 46.0
group_gap = 30.0
cell_width = (page_width - left - right - group_gap*(groups - 1)) / columns
cell_height = (page_height - top - bottom) / rows
array column[panels]
array line[panels]
array layer[panels]
array head[panels]
stats $panel using (column[int($0) + 1] = $1, line[int($0) + 1] = $2, layer[int($0) + 1] = $3, head[int($0) + 1] = $4, 0) nooutput

do for [p = 1:panels] {
  group = int(column[p]) / int(heads)
  x = left + column[p]*cell_width + group*group_gap
  y = page_height - top - (line[p] + 1)*cell_height
  set lmargin at screen (x + 1)/page_width
  set rmargin at screen (x + cell_width - 1)/page_width
  set bmargin at screen (y + 1)/page_height
  set tmargin at screen (y + cell_height - 1)/page_height
  lowest = line[p] == rows - 1 || p + heads > panels
  if (lowest) {
    set xtics ('DC' dc_position, '10' 10, '100' 100, '10^3' 1000, '10^4' 10000) offset 0,0.4
  } else {
    set xtics ('' dc_position, '' 10, '' 100, '' 1000, '' 10000)
  }
  eval 'set ytics ('.(int(column[p]) % int(heads) == 0 ? y_names : y_blanks).') offset 0.6,0'
  set label 2 sprintf('L%d H%d', layer[p], head[p]) at graph 0.965, 0.86 right font ',7' tc rgb muted
  plot for [s = 1:states] $power index ((p - 1)*states + s - 1) using 1:2 with lines lw 0.9 lc rgb value(sprintf('state_color_%d', s)), \
       for [s = 1:states] $power index ((p - 1)*states + s - 1) every ::0:0:0:0 using 1:2 with points pt 7 ps 0.25 lc rgb value(sprintf('state_color_%d', s))
  if (p == 1) { unset label 1; unset label 5; unset label 6; unset arrow; do for [s = 1:states] { unset label 10 + s } }
}
