# A channel along the tokens (top) and its energy spectrum (bottom), before and after filtering; one column per state.
# $states: block per panel, rows (token, before, after); $energy: rows (bin, before, after); panels, panel_title_1 …,
# heading, bins, energy_low_1 …, energy_high_1 … (decades), removed, removed_from_1 …, removed_to_1 … (bins), bin_label

set multiplot
set label 1 heading at screen 12/page_width, 1 - 16/page_height left font heading_font(heading) tc rgb ink
unset mytics
left = 62.0
gap = 62.0
width = (page_width - left - 14 - gap*(panels - 1))/panels
set key at screen 1 - 14/page_width, screen 1 - 36/page_height right center maxrows 1 samplen 2.2 tc rgb ink
do for [p = 1:panels] {
  x = left + (p - 1)*(width + gap)
  set lmargin at screen x/page_width
  set rmargin at screen (x + width)/page_width
  set tmargin at screen 1 - 66/page_height
  set bmargin at screen 0.5 + 34/page_height
  unset logscale
  set format y '%g'
  set autoscale x
  set autoscale y
  set xrange [] noextend
  set label 2 value(sprintf('panel_title_%d', p)) at graph 0.0, 1.07 left font ':Bold,9' tc rgb ink
  set xlabel 'token' offset 0,0.6 tc rgb ink
  if (p == 1) { set ylabel 'state' offset 0.6,0 tc rgb ink } else { unset ylabel }
  plot $states index (p - 1) using 1:2 with lines lw 0.9 lc rgb sky title 'before', \
       $states index (p - 1) using 1:3 with lines lw 1.1 lc rgb orange title 'after'
  unset key
  unset label 1
  unset label 2
  set tmargin at screen 0.5 - 22/page_height
  set bmargin at screen 46/page_height
  set logscale y
  set format y '10^{%T}'
  set xrange [0 : bins - 1]
  set yrange [10**value(sprintf('energy_low_%d', p)) : 10**value(sprintf('energy_high_%d', p))]
  do for [r = 1:removed] {
    set object r rectangle from first value(sprintf('removed_from_%d', r)) - 0.5, graph 0 to first value(sprintf('removed_to_%d', r)) - 0.5, graph 1 behind fs solid noborder fc rgb '#f0f0f0'
  }
  set xlabel bin_label offset 0,0.6 tc rgb ink
  if (p == 1) { set ylabel 'energy' offset 0.6,0 tc rgb ink } else { unset ylabel }
  plot $energy index (p - 1) using 1:2 with lines lw 0.9 lc rgb sky, \
       $energy index (p - 1) using 1:3 with lines lw 1.1 lc rgb orange
  unset object
}
