// Draws the interactive timelines over the still ones, in the colours of the page.
(function () {
  "use strict";
  var style = getComputedStyle(document.documentElement);
  var roles = JSON.parse(document.getElementById("roles").textContent);
  function coloured(text) {
    Object.keys(roles).forEach(function (role) {
      var now = getComputedStyle(document.documentElement).getPropertyValue("--" + role).trim();
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
  var figures = Array.prototype.slice.call(document.querySelectorAll("figure[data-live]"));
  if (!window.vegaEmbed || !figures.length || !style) { return; }
  function all() { figures.forEach(draw); }
  window.requestAnimationFrame(function () { window.setTimeout(all, 0); });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
})();
