# Two maps, one above the other: (layer, head) × token of the relative score, and of the share of tokens kept.
# $score, $kept: lines = heads of layers, columns = `width` tokens each; rows, columns, width, first_token, low, high (ends
# of the score's scale), layer_names, heading

at_tokens = rows > 1 && columns > 1 ? 'using (first_token + ($1 + 0.5)*width):2:3 with image' : 'using (first_token + ($1 + 0.5)*width):2:(0.505*width):(0.505):3 with boxxyerror fillstyle solid 1 noborder linecolor palette'
set multiplot
set label 1 heading at screen 12/page_width, 1 - 16/page_height left font heading_font(heading) tc rgb ink
set border 0
unset grid
set tics scale 0
set palette defined @viridis
unset key
left = 58.0
right = 92.0
top = 56.0
bottom = 46.0
gap = 48.0
height = (page_height - top - bottom - gap)/2
set xrange [first_token : first_token + columns*width]
set yrange [rows - 0.5 : -0.5]
eval 'set ytics '.layer_names
set lmargin at screen left/page_width
set rmargin at screen 1 - right/page_width
do for [p = 0:1] {
  y = page_height - top - p*(height + gap)
  set tmargin at screen y/page_height
  set bmargin at screen (y - height)/page_height
  set label 3 'layer (its KV heads below each other)' at screen 14/page_width, screen (y - height/2)/page_height center rotate tc rgb ink
  set label 2 (p == 0 ? 'Score relative to a uniform one' : 'Share of the tokens kept') at screen left/page_width, screen (y + 11)/page_height left font ':Bold,10' tc rgb ink
  set cbrange [(p == 0 ? low : 0) : (p == 0 ? high : 1)]
  set colorbox user origin screen 1 - (right - 12)/page_width, screen (y - height)/page_height size screen 11/page_width, screen height/page_height
  if (p == 0) { set xtics format ''; set cbtics auto; plot $score matrix @at_tokens }
  if (p == 1) { set xtics format '%g'; set xlabel 'token' offset 0,0.4 tc rgb ink; set cbtics 0.25 format '%.2f'; plot $kept matrix @at_tokens }
  unset label 1
}
