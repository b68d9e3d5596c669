"use strict";
(() => {
  const all = (query, within = document) => [...within.querySelectorAll(query)];
  document.documentElement.classList.add("runs");

  // Sort a table by a click on a head; rows of means stay last.
  for (const table of all("table.sortable")) {
    const heads = all("thead th", table), body = table.tBodies[0];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const rising = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", rising ? "ascending" : "descending");
        const value = (row) => Number(row.cells[column].dataset.value);
        const rows = all("tr:not(.all)", body).sort((a, b) => (rising ? 1 : -1) * (value(a) - value(b)));
        body.prepend(...rows);
      });
    });
  }

  // Say what a mark stands for, on hover and on focus.
  const told = document.createElement("div");
  told.id = "told";
  told.hidden = true;
  told.setAttribute("aria-hidden", "true");
  document.body.append(told);
  const tell = (point) => {
    const box = point.querySelector(".mark").getBoundingClientRect();
    told.textContent = point.querySelector("title").textContent;
    told.hidden = false;
    const left = Math.min(box.left, innerWidth - told.offsetWidth - 8);
    told.style.left = `${Math.max(8, left)}px`;
    told.style.top = `${box.top > 60 ? box.top - told.offsetHeight - 8 : box.bottom + 8}px`;
  };
  for (const point of all(".point")) {
    point.addEventListener("pointerenter", () => tell(point));
    point.addEventListener("focus", () => tell(point));
    for (const end of ["pointerleave", "blur"]) point.addEventListener(end, () => { told.hidden = true; });
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") told.hidden = true; });

  // Show two other columns on the map.
  const places = document.getElementById("places");
  const lists = all("select[data-axis]");
  if (places && lists.length) {
    const { columns, frame } = JSON.parse(places.textContent);
    const map = document.querySelector("#map svg"), ticks = map.querySelector(".ticks");
    const across = (share) => frame.left + share * (frame.right - frame.left);
    const up = (share) => frame.bottom - share * (frame.bottom - frame.top);
    const write = (text, x, y, anchor) => {
      const node = document.createElementNS("http://www.w3.org/2000/svg", "text");
      for (const [key, value] of Object.entries({ class: "tick", x, y, "text-anchor": anchor })) node.setAttribute(key, value);
      node.textContent = text;
      return node;
    };
    const redraw = () => {
      const [x, y] = lists.map((list) => columns[Number(list.value)]);
      all(".point", map).forEach((point, j) => {
        point.setAttribute("transform", `translate(${across(x.at[j])},${up(y.at[j])})`);
        const ellipse = point.querySelector("ellipse");
        if (ellipse) {
          ellipse.setAttribute("rx", Math.min(560, x.noise[j] * (frame.right - frame.left)));
          ellipse.setAttribute("ry", Math.min(430, y.noise[j] * (frame.bottom - frame.top)));
        }
        point.querySelector("title").textContent = `cluster ${j}: ${x.name} ${x.said[j]}, ${y.name} ${y.said[j]}`;
      });
      ticks.replaceChildren(
        ...x.ticks.map(([share, text]) => write(text, across(share), frame.bottom + 17, "middle")),
        ...y.ticks.map(([share, text]) => write(text, frame.left - 7, up(share) + 4, "end")),
      );
      map.querySelector("[data-of=x]").textContent = x.name;
      map.querySelector("[data-of=y]").textContent = y.name;
    };
    lists.forEach((list) => list.addEventListener("change", redraw));
  }

  // Copy a command or the job.
  for (const button of all("button.copy")) {
    button.addEventListener("click", async () => {
      const text = button.parentElement.querySelector("pre").textContent;
      try {
        await navigator.clipboard.writeText(text);
      } catch {
        const range = document.createRange();
        range.selectNodeContents(button.parentElement.querySelector("pre"));
        getSelection().removeAllRanges();
        getSelection().addRange(range);
      }
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }
})();
