// Draws the interactive timelines over the still ones, in the colours of the page, when they come
// near the window: a page of many engines opens as fast as one of few.
(function () {
  "use strict";
  var figures = Array.prototype.slice.call(document.querySelectorAll("figure[data-live]"));
  if (!window.vegaEmbed || !figures.length) { return; }
  var roles = JSON.parse(document.getElementById("roles").textContent);
  function coloured(text) {
    var style = getComputedStyle(document.documentElement);
    Object.keys(roles).forEach(function (role) {
      var now = style.getPropertyValue("--" + role).trim();
      text = text.split('"' + roles[role] + '"').join('"' + now + '"');
    });
    return JSON.parse(text);
  }
  function draw(figure) {
    var spec = coloured(figure.querySelector("script").textContent);
    var place = figure.querySelector(".live");
    window.vegaEmbed(place, spec, { actions: false, renderer: "svg" }).then(function () {
      figure.classList.add("on");
    });
  }
  var watcher = new IntersectionObserver(function (entries) {
    entries.forEach(function (entry) {
      if (!entry.isIntersecting) { return; }
      watcher.unobserve(entry.target);
      draw(entry.target);
    });
  }, { rootMargin: "600px" });
  figures.forEach(function (figure) { watcher.observe(figure); });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () {
    figures.filter(function (figure) { return figure.classList.contains("on"); }).forEach(draw);
  });
})();
