# Two maps layer × chunk: the change of perplexity, and the same scaled to 0–1 within each layer.
# $delta: block 0 colours of Δ (a signed logarithm, see colour_tics), block 1 scaled; lines = layers, columns = chunks.
# layers, chunks, layer_names, chunk_names, colour_limit, colour_tics, heading, chunk_label

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
set xlabel chunk_label offset 0,0.4 tc rgb ink
left = 62.0
bar = 82.0
top = 56.0
bottom = 44.0
width = (page_width - left - 2*bar - 8)/2
set tmargin at screen 1 - top/page_height
set bmargin at screen bottom/page_height
do for [p = 0:1] {
  x = left + p*(width + bar)
  set lmargin at screen x/page_width
  set rmargin at screen (x + width)/page_width
  set colorbox user origin screen (x + width + 9)/page_width, screen bottom/page_height size screen 11/page_width, screen (page_height - top - bottom)/page_height
  if (p == 0) {
    set label 3 'layer' at screen 14/page_width, screen (bottom + 0.5*(page_height - top - bottom))/page_height center rotate tc rgb ink
    set palette defined @diverging
    set cbrange [-colour_limit : colour_limit]
    eval 'set cbtics '.colour_tics
    set label 2 'Δ = (PPL - PPL_{0}) / PPL_{0}' at graph 0, screen 1 - (top - 11)/page_height left font ':Bold,10' tc rgb ink
  } else {
    unset label 3
    set format y ''
    set ytics ('' 0)
    set palette defined @viridis
    set cbrange [0:1]
    set cbtics auto
    set cbtics 0.25 format '%.2f'
    set label 2 'Δ scaled to 0–1 by layer' at graph 0, screen 1 - (top - 11)/page_height left font ':Bold,10' tc rgb ink
  }
  plot $delta index p matrix @cells
  unset label 1
}
