# Two maps depth × length: the score (0–1) and the log-likelihood of a token of the right answer.
# $cells: block 0 the score, block 1 the log-likelihood; lines = depths, columns = lengths.
# columns, rows, length_names, depth_names, least (of the log-likelihoods), heading

cells = map_cells(rows, columns)
set multiplot
set label 1 heading at screen 12/page_width, 1 - 16/page_height left font heading_font(heading) tc rgb ink
set border 0
unset grid
set tics scale 0
set xrange [-0.5 : columns - 0.5]
set yrange [rows - 0.5 : -0.5]
eval 'set xtics rotate by 0 '.length_names
eval 'set ytics '.depth_names
set xlabel 'tokens' offset 0,0.4 tc rgb ink
left = 68.0
bar = 84.0
top = 56.0
bottom = 44.0
width = (page_width - left - 2*bar - 8)/2
set tmargin at screen 1 - top/page_height
set bmargin at screen bottom/page_height
set palette defined @viridis
do for [p = 0:1] {
  x = left + p*(width + bar)
  set lmargin at screen x/page_width
  set rmargin at screen (x + width)/page_width
  set colorbox user origin screen (x + width + 9)/page_width, screen bottom/page_height size screen 11/page_width, screen (page_height - top - bottom)/page_height
  if (p == 0) {
    set label 3 'depth, %' at screen 14/page_width, screen (bottom + 0.5*(page_height - top - bottom))/page_height center rotate tc rgb ink
    set cbrange [0:1]
    set cbtics 0.25 format '%.2f'
    set label 2 'share found' at graph 0, screen 1 - (top - 11)/page_height left font ':Bold,10' tc rgb ink
  } else {
    unset label 3
    set ytics ('' 0)
    set cbrange [least : 0]
    set cbtics auto
    set cbtics format '%.3g'
    set label 2 'log-likelihood a token' at graph 0, screen 1 - (top - 11)/page_height left font ':Bold,10' tc rgb ink
  }
  plot $cells index p matrix @cells
  unset label 1
}
