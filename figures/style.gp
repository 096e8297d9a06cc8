# The look that all figures share. Drawn into every page before its template; gnuplot 5.4.
# Lines: Okabe & Ito, Color Universal Design (2008). Maps: viridis. Differences: Brewer's RdBu, blue = less.

set encoding utf8
set border 3 lc rgb '#555555' lw 0.8
set tics nomirror out scale 0.6 tc rgb '#222222'
set grid xtics ytics lc rgb '#e4e4e4' lw 0.6 lt 1
set key noautotitle
unset title
ink = '#222222'
muted = '#767676'

blue = '#0072B2'
orange = '#D55E00'
green = '#009E73'
yellow = '#E69F00'
sky = '#56B4E9'
purple = '#CC79A7'
series_color(i) = word(blue.' '.orange.' '.green.' '.purple.' '.yellow.' '.sky.' #000000', int(i) % 7 + 1)

viridis = "(0 '#440154', 1 '#482878', 2 '#3e4989', 3 '#31688e', 4 '#26828e', 5 '#1f9e89', 6 '#35b779', 7 '#6ece58', 8 '#b5de2b', 9 '#fde725')"
# Without the palest yellow: for lines on white.
viridis_lines = "(0 '#440154', 1 '#482878', 2 '#3e4989', 3 '#31688e', 4 '#26828e', 5 '#1f9e89', 6 '#35b779', 7 '#6ece58', 8 '#a5c92b')"
diverging = "(-4 '#2166ac', -3 '#4393c3', -2 '#92c5de', -1 '#d1e5f0', 0 '#f7f7f7', 1 '#fddbc7', 2 '#f4a582', 3 '#d6604d', 4 '#b2182b')"

# How the cells of a map are drawn: as an image, which in an SVG takes a thousandth of what a rectangle for each would
# (export/figure.cpp keeps viewers from blurring it); gnuplot's images have two rows and columns or more.
map_cells(rows, columns) = rows > 1 && columns > 1 ? 'with image' : 'using 1:2:(0.505):(0.505):3 with boxxyerror fillstyle solid 1 noborder linecolor palette'
# Order of picks, dark = first; white stays for "not picked".
picks_palette = "(0 '#440154', 1 '#3e4989', 2 '#26828e', 3 '#35b779', 4 '#b5de2b')"

# A heading as large as 12 pt and no wider than the page; 8.5 points a letter at that size.
heading_font(text) = sprintf(",%.1f", 12.0 * (strlen(text) * 8.5 > page_width - 24 ? (page_width - 24) / (strlen(text) * 8.5) : 1))
