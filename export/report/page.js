"use strict";

// Tables sort by their headers: numbers by data-sort, words by the alphabet; what is missing stays last.
function sortTable(header) {
  const row = header.parentElement, body = row.closest("table").tBodies[0];
  const column = Array.from(row.children).indexOf(header);
  const up = header.getAttribute("aria-sort") !== "ascending";
  const key = (line) => {
    const cell = line.children[column];
    return cell.dataset.sort !== undefined ? Number(cell.dataset.sort) : cell.textContent;
  };
  const missing = (value) => value === "\u2013" || value === "";
  const order = (a, b) => {
    if (missing(a) || missing(b)) return missing(a) - missing(b);
    const less = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", {numeric: true});
    return up ? less : -less;
  };
  for (const other of row.children) if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
  header.setAttribute("aria-sort", up ? "ascending" : "descending");
  body.append(...Array.from(body.rows).sort((a, b) => order(key(a), key(b))));
}

for (const button of document.querySelectorAll("th button"))
  button.addEventListener("click", () => sortTable(button.closest("th")));

// Values under the pointer, and by the arrow keys under the focus.
const tip = document.getElementById("tip");

function show(words, box) {
  tip.textContent = words;
  tip.hidden = false;
  const width = tip.offsetWidth, height = tip.offsetHeight, room = document.documentElement.clientWidth;
  tip.style.left = Math.max(4, Math.min(box.left + box.width / 2 - width / 2, room - width - 4)) + "px";
  tip.style.top = (box.top > height + 12 ? box.top - height - 8 : box.bottom + 8) + "px";
}

function hide(svg) {
  tip.hidden = true;
  for (const mark of svg.querySelectorAll(".active")) mark.classList.remove("active");
  svg.querySelector(".cursor")?.remove();
}

// A drawing's points in reading order; each tells its title.
function stepPoints(svg) {
  const points = Array.from(svg.querySelectorAll(".point"));
  for (const point of points) {
    const title = point.querySelector("title");
    point.dataset.words = title.textContent;
    title.remove();  // the browser would show it, too
    point.addEventListener("pointerenter", () => show(point.dataset.words, point.getBoundingClientRect()));
    point.addEventListener("pointerleave", () => hide(svg));
  }
  const left = (point) => point.querySelector(".mark, .bar").getBoundingClientRect();
  points.sort((a, b) => left(a).left - left(b).left || left(a).top - left(b).top);
  let at = -1;
  return (dx, dy) => {
    at = Math.max(0, Math.min(points.length - 1, at + (dx || dy)));
    points[at].classList.add("active");
    show(points[at].dataset.words, points[at].getBoundingClientRect());
  };
}

// A map's cells; what they hold stands in the data of its group.
function stepCells(svg, map) {
  const [left, top] = map.dataset.at.split(" ").map(Number), [width, height] = map.dataset.cell.split(" ").map(Number);
  const rows = map.dataset.rows.split(";"), columns = map.dataset.columns.split(";");
  const [rowWord, columnWord] = map.dataset.words.split(";");
  const values = map.dataset.values.split("|").map((row) => row.split(";"));
  const tell = (row, column) => {
    hide(svg);
    const cursor = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const place = {class: "cursor", x: left + column * width, y: top + row * height, width, height};
    for (const [name, value] of Object.entries(place)) cursor.setAttribute(name, value);
    svg.append(cursor);
    show(`${rowWord} ${rows[row]}, ${columnWord.split(",")[0]} ${columns[column]}: ${values[row][column]}`,
      cursor.getBoundingClientRect());
  };
  map.addEventListener("pointermove", (event) => {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const row = Math.floor((place.y - top) / height), column = Math.floor((place.x - left) / width);
    if (values[row]?.[column] !== undefined) tell(row, column);
  });
  map.addEventListener("pointerleave", () => hide(svg));
  let row = 0, column = -1;
  return (dx, dy) => {
    column = Math.max(0, Math.min(columns.length - 1, column + dx));
    row = Math.max(0, Math.min(rows.length - 1, row + dy));
    tell(row, column);
  };
}

const kSteps = {ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1]};
for (const svg of document.querySelectorAll(".drawings svg[role=img]")) {
  const map = svg.querySelector(".map");
  if (!map && !svg.querySelector(".point")) continue;
  const step = map ? stepCells(svg, map) : stepPoints(svg);
  svg.setAttribute("tabindex", "0");
  svg.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide(svg);
    if (!kSteps[event.key]) return;
    event.preventDefault();
    hide(svg);
    step(...kSteps[event.key]);
  });
  svg.addEventListener("blur", () => hide(svg));
}

// A printed page has no details to open.
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
