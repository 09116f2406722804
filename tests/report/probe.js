// Looks at a report page as a reader would: is every plot drawn, is anything cut off or on top of
// something else, can it be read? What is wrong is left in an element that the test reads.
(function () {
  var wrong = [];
  function say(what) { wrong.push(what); }

  function numbers(text) { return (text.match(/-?[0-9.]+(e-?[0-9]+)?/gi) || []).map(Number); }

  function check_shapes(svg, name) {
    var drawn = svg.querySelectorAll('path.line, path.mark, rect.bar');
    if (!drawn.length) say(name + ': nothing is drawn');
    svg.querySelectorAll('*').forEach(function (e) {
      for (var i = 0; i < e.attributes.length; i++) {
        var a = e.attributes[i];
        if (!/^(d|x|y|cx|cy|r|width|height|viewBox)$/.test(a.name)) continue;
        if (/nan|inf|undefined/i.test(a.value)) say(name + ': ' + a.name + '=' + a.value);
        if (!numbers(a.value).length || !numbers(a.value).every(isFinite))
          say(name + ': no number in ' + a.name + '=' + a.value);
      }
    });
    drawn.forEach(function (e) {
      var box = e.getBBox();
      if (![box.x, box.y, box.width, box.height].every(isFinite)) say(name + ': no place');
    });
  }

  function check_texts(svg, name) {
    var frame = svg.getBoundingClientRect(), boxes = [];
    var scale = frame.width / svg.viewBox.baseVal.width;
    if (frame.width < 200 || frame.height < 40) say(name + ': too small');
    svg.querySelectorAll('text').forEach(function (t) {
      var box = t.getBoundingClientRect(), what = name + ': "' + t.textContent + '"';
      if (parseFloat(getComputedStyle(t).fontSize) * scale < 10.5) say(what + ' is too small');
      if (box.left < frame.left - 1 || box.right > frame.right + 1 ||
          box.top < frame.top - 1 || box.bottom > frame.bottom + 1) say(what + ' is cut off');
      boxes.forEach(function (other) {
        var wide = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left);
        var high = Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top);
        // Boxes are higher than letters.
        if (wide > 1 && high > box.height * 0.3) say(what + ' is on "' + other.text + '"');
      });
      boxes.push({box: box, text: t.textContent});
    });
  }

  function luminance(colour) {
    var c = numbers(colour).slice(0, 3).map(function (v) {
      v /= 255;
      return v <= 0.03928 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4);
    });
    return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
  }

  function contrast(a, b) {
    var x = luminance(a), y = luminance(b);
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  }

  function check_contrast() {
    document.querySelectorAll('.box').forEach(function (box) {
      var page = getComputedStyle(box).backgroundColor;
      box.querySelectorAll('text, .line, .bar, .meaning, .legend span').forEach(function (e) {
        var style = getComputedStyle(e);
        var of = e.matches('.line') ? style.stroke : e.matches('text, .bar') ? style.fill : style.color;
        // WCAG: text 4.5, large or bold text and graphics 3; a bar has a number beside it.
        var least = e.matches('.bar') ? 2 : e.matches('.line, .letter') ? 3 : 4.5;
        if (contrast(of, page) < least)
          say(of + ' on ' + page + ' is hard to see: ' + (e.className.baseVal || e.className));
      });
    });
  }

  function check_tips() {
    var tip = document.getElementById('tip');
    document.querySelectorAll('svg.plot').forEach(function (svg) {
      var at = svg.querySelector('[data-tip]');
      if (!at) return say('nothing to point at');
      at.dispatchEvent(new PointerEvent('pointermove', {bubbles: true, clientX: 5, clientY: 5}));
      if (tip.style.display !== 'block' || tip.textContent !== at.getAttribute('data-tip'))
        say('no tip for ' + at.getAttribute('data-tip'));
    });
    document.body.dispatchEvent(new PointerEvent('pointermove', {bubbles: true}));
    if (tip.style.display !== 'none') say('the tip stays');
  }

  document.querySelectorAll('details').forEach(function (d) { d.open = true; });
  var plots = [].slice.call(document.querySelectorAll('svg.plot'));
  plots.forEach(function (svg, i) {
    var name = svg.getAttribute('aria-label') + ' ' + i;
    check_shapes(svg, name);
    check_texts(svg, name);
    if (svg.parentNode.querySelectorAll('p.meaning').length !== 1) say(name + ': no meaning');
  });
  check_contrast();
  check_tips();
  if (document.documentElement.scrollWidth > innerWidth)
    say('the page is ' + document.documentElement.scrollWidth + ' wide, the window ' + innerWidth);
  document.querySelectorAll('table').forEach(function (t) {
    if (getComputedStyle(t.parentNode).overflowX !== 'auto') say('a table does not scroll');
  });

  var out = document.createElement('pre');
  out.id = 'probe';
  out.textContent = JSON.stringify({
    errors: window.errors, wrong: wrong, title: document.title, width: innerWidth,
    dark: matchMedia('(prefers-color-scheme: dark)').matches,
    plots: plots.map(function (svg) { return svg.getAttribute('aria-label'); }),
    lines: plots.map(function (svg) { return svg.querySelectorAll('path.line').length; }),
    bars: plots.map(function (svg) { return svg.querySelectorAll('rect.bar').length; })
  });
  document.body.appendChild(out);
})();
