# Maps layer × chunk of the share of a layer's energy, one per kind of state, on one logarithmic scale.
# $share: block per map of log10(share), lines = layers, columns = chunks; maps, map_title_1 …, layers, chunks, low (of the
# scale, a decade), layer_names, chunk_names, heading

cells = map_cells(layers, chunks)
set multiplot
set label 1 heading at screen 12/page_width, 1 - 16/page_height left font heading_font(heading) tc rgb ink
set border 0
unset grid
set tics scale 0
set xrange [-0.5 : chunks - 0.5]
set yrange [layers - 0.5 : -0.5]
eval 'set xtics '.chunk_names
eval 'set ytics '.layer_names
set palette defined @viridis
set cbrange [low : 0]
unset colorbox
left = 62.0
right = 98.0
top = 58.0
bottom = 46.0
gap = 16.0
width = (page_width - left - right - gap*(maps - 1))/maps
set tmargin at screen 1 - top/page_height
set bmargin at screen bottom/page_height
set xlabel 'chunk' offset 0,0.4 tc rgb ink
set label 3 'layer' at screen 14/page_width, screen (bottom + 0.5*(page_height - top - bottom))/page_height center rotate tc rgb ink
do for [p = 1:maps] {
  x = left + (p - 1)*(width + gap)
  set lmargin at screen x/page_width
  set rmargin at screen (x + width)/page_width
  set label 2 value(sprintf('map_title_%d', p)) at screen x/page_width, screen 1 - (top - 11)/page_height left font ':Bold,10' tc rgb ink
  if (p == maps) {
    set colorbox user origin screen 1 - 84/page_width, screen bottom/page_height size screen 11/page_width, screen (page_height - top - bottom)/page_height
    set cbtics 1 format '10^{%g}'
    set cblabel 'share of the energy' offset 0.6,0 tc rgb ink
  }
  plot $share index (p - 1) matrix @cells
  unset label 1
  unset label 3
  set format y ''
  set ytics ('' 0)
}
