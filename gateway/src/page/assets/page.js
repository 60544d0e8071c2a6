// Draws the snapshots that the server sends, and knows nothing else.
'use strict';

const KEPT = 60; // snapshots that the charts show
const SVG = 'http://www.w3.org/2000/svg';
const $ = id => document.getElementById(id);

const WORDS = {
  every_worker_overloaded: 'every worker was full or busy', rank_full: 'its rank was full',
  worker_full: 'the whole worker was full', insufficient_memory: 'not enough memory free',
  slo_violation_risk: 'would have missed its promise', queue_timeout: 'held too long',
  queue_full: 'as many held as may be', cold_start: 'engine still cold',
  noncritical_shed: 'memory short, class not critical', concurrency_limit: 'limit in force reached',
  room_kept: 'room kept for other classes', rate_limit: 'over its rate', too_large: 'larger than the engine',
  utilisation: 'busy', sm_utilisation: 'multiprocessors', memory_bandwidth: 'memory bandwidth',
  memory: 'memory', kv_blocks: 'KV blocks',
  free: 'free', busy: 'busy: over a threshold', marked: 'refused a moment ago', unwell: 'does not answer',
  active_decode_blocks_threshold: 'decode blocks', active_prefill_tokens_threshold: 'prefill tokens',
  active_prefill_tokens_threshold_frac: 'prefill tokens as a fraction',
};
const GOODPUT = {
  admitted: ['admitted a second', 'were admitted'],
  answered: ['answered a second', 'got an answer'],
  promise: ['answers a second within their promise', 'kept their promise'],
};
const words = name => WORDS[name] ?? name.replaceAll('_', ' ');
const number = n => n.toLocaleString('en-US');
const rate = n => n.toFixed(n > 0 && n < 9.95 ? 1 : 0);
const percent = share => share == null ? '–' : `${Math.round(share * 100)} %`;
const time = s => s == null ? '–' : s < 0.9995 ? `${Math.round(s * 1000)} ms` : `${s.toFixed(s < 9.95 ? 1 : 0)} s`;
const sum = (list, of) => list.reduce((total, one) => total + of(one), 0);

function set(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function svg(name, attributes) {
  const node = document.createElementNS(SVG, name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  return node;
}

// A cell is a text, or {n, most} with a bar (an alarm where full is bad), or
// {href, text}, or {text, tone}.
function fill(node, cell) {
  if (typeof cell === 'string') cell = { text: cell };
  if ('most' in cell) {
    const share = cell.most > 0 ? Math.min(1, cell.n / cell.most) : 0;
    if (!node.querySelector('svg')) {
      const bar = svg('svg', { class: 'bar', 'aria-hidden': 'true', viewBox: '0 0 100 8', preserveAspectRatio: 'none' });
      bar.append(svg('rect', { class: 'track', width: 100, height: 8 }), svg('rect', { class: 'fill', height: 8 }));
      node.replaceChildren(document.createElement('span'), bar);
    }
    set(node.firstChild, cell.text ?? `${number(cell.n)} of ${number(cell.most)}`);
    node.querySelector('.fill').setAttribute('width', share * 100);
    node.classList.toggle('full', Boolean(cell.alarm) && share >= 1);
  } else if ('href' in cell) {
    if (!node.querySelector('a')) node.replaceChildren(document.createElement('a'));
    const link = node.firstChild;
    if (link.getAttribute('href') !== cell.href) link.setAttribute('href', cell.href);
    set(link, cell.text);
  } else {
    set(node, cell.text);
    node.className = cell.tone ? `${cell.tone}-text` : '';
  }
}

// Nodes stay where they are, so that whoever reads or focuses one keeps it.
function table(id, title, note, columns, rows) {
  let box = $(id);
  if (!rows.length) return box?.remove();
  if (!box) {
    box = document.createElement('section');
    box.id = id;
    box.className = 'table';
    box.setAttribute('aria-labelledby', `${id}-title`);
    // Roles are said outright: on a phone these are laid out as lists.
    box.innerHTML = `<h2 id="${id}-title"></h2><p class="note"></p><table role="table" aria-labelledby="${id}-title"><thead role="rowgroup"><tr role="row"></tr></thead><tbody role="rowgroup"></tbody></table>`;
    for (const name of columns) {
      const head = document.createElement('th');
      head.scope = 'col';
      head.setAttribute('role', 'columnheader');
      box.querySelector('thead tr').append(head);
      head.textContent = name;
    }
    const after = [...$('tables').children].find(other => ORDER.indexOf(other.id) > ORDER.indexOf(id));
    $('tables').insertBefore(box, after ?? null);
  }
  set(box.querySelector('h2'), title);
  set(box.querySelector('.note'), note);
  const body = box.querySelector('tbody');
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((row, at) => {
    const line = body.rows[at] ?? body.insertRow();
    line.setAttribute('role', 'row');
    row.forEach((cell, column) => {
      let node = line.cells[column];
      if (!node) {
        node = line.appendChild(document.createElement(column ? 'td' : 'th'));
        node.setAttribute('role', column ? 'cell' : 'rowheader');
        if (!column) node.scope = 'row';
        node.dataset.label = columns[column];
      }
      fill(node, cell);
    });
  });
}
const ORDER = ['workers', 'queues', 'lanes', 'refusals', 'classes', 'decisions'];

function list(id, pairs) {
  const box = $(id);
  while (box.children.length > pairs.length * 2) box.lastChild.remove();
  pairs.forEach(([name, cell], at) => {
    if (!box.children[at * 2]) box.append(document.createElement('dt'), document.createElement('dd'));
    set(box.children[at * 2], name);
    fill(box.children[at * 2 + 1], cell);
  });
}

// Lines of the last minute; the same is said in words for those who do not see it.
function chart(id, unit, lines) {
  const most = Math.max(unit === '%' ? 1 : 0, ...lines.flatMap(line => line.values), 1e-9);
  const shapes = lines.flatMap(({ values, tone }, at) => {
    const x = n => (n + KEPT - values.length) * 120 / (KEPT - 1);
    const points = values.map((value, n) => `${x(n).toFixed(1)},${(35 - 33 * value / most).toFixed(1)}`).join(' ');
    const line = svg('polyline', { points, class: tone });
    const area = svg('polygon', { points: `${x(0).toFixed(1)},36 ${points} 120,36` });
    return at ? [line] : [area, line];
  });
  $(`${id}-chart`).replaceChildren(...shapes);
  const shown = value => unit === '%' ? percent(value) : `${rate(value)}${unit}`;
  const said = lines.map(({ name, values }) => `${name} now ${shown(values.at(-1) ?? 0)}, at most ${shown(Math.max(0, ...values))}`);
  $(`${id}-chart`).setAttribute('aria-label', `Last ${lines[0].values.length} seconds: ${said.join('; ')}`);
  const legend = $(`${id}-legend`);
  if (legend.childElementCount !== lines.length) {
    legend.replaceChildren(...lines.flatMap(({ tone }) => {
      const key = document.createElement('span');
      key.className = `key ${tone}`;
      return [key, ' '];
    }));
  }
  lines.forEach(({ name, values }, at) => {
    const dash = lines[at].tone === 'bad' ? '┅' : '━';
    set(legend.children[at], `${dash} ${name} ${shown(values.at(-1) ?? 0)}`);
  });
}

let history = [];

function draw(now) {
  if (history.length && now.at_ms < history.at(-1).at_ms) history = [];
  history = [...history, now].slice(-KEPT);
  const series = of => history.map(of);
  const { gpu, concurrency: load, quality, front } = now;

  const role = front ? 'frontend' : 'worker';
  set($('role'), role);
  document.title = `Tidegate ${role}`;
  set($('version'), `Version ${now.version}.`);
  set($('story'), story(now));

  const fullest = Object.entries(gpu.shares).sort((a, b) => b[1] - a[1])[0];
  set($('gpu-now'), fullest ? percent(fullest[1]) : 'not known');
  set($('gpu-of'), fullest ? `${words(fullest[0])} in use` : '');
  const share = one => Math.max(0, ...Object.values(one.gpu.shares));
  chart('gpu', '%', [{ name: 'fullest', tone: 'accent', values: series(share) }]);
  list('gpu-list', gpu.unknown ? [[gpu.unknown, '']]
    : Object.entries(gpu.shares).map(([of, part]) => [words(of), { n: part, most: 1, text: percent(part), alarm: of === 'memory' }]));

  set($('running-now'), number(load.running));
  set($('running-of'), `of ${number(load.running_limit)} places in the ${front ? 'engines' : 'engine'} taken`);
  chart('concurrency', '/s', [
    { name: 'admitted', tone: 'accent', values: series(one => one.concurrency.admitted_per_second) },
    { name: 'refused', tone: 'bad', values: series(one => one.concurrency.refused_per_second) },
  ]);
  list('concurrency-list', [
    ['running', { n: load.running, most: load.running_limit }],
    ['waiting for a first token', { n: load.waiting, most: load.waiting_limit }],
    ['queued at the gate', { n: load.queued, most: load.queue_limit, alarm: true }],
    ...(load.held ? [['held by the policy', number(load.held)]] : []),
    ...(front ? [['in flight', number(front.in_flight)]] : []),
  ]);

  const [counted, kept] = GOODPUT[quality.counts];
  set($('goodput-now'), `${rate(quality.goodput)}/s`);
  set($('goodput-of'), counted);
  chart('quality', '/s', [
    { name: 'goodput', tone: 'good', values: series(one => one.quality.goodput) },
    { name: 'refused', tone: 'bad', values: series(one => one.concurrency.refused_per_second) },
  ]);
  const three = quantiles => quantiles ? quantiles.map(time).join(' · ') : '–';
  list('quality-list', [
    [kept, percent(quality.attainment)],
    [`last ${now.window_seconds} s`, 'p50 · p99 · p99.9'],
    ['first token', three(quality.first_token)],
    ['wait in the queue', three(quality.queue_wait)],
    ['admitted out of it', number(quality.queue_waits)],
  ]);

  workers(now);
  queues(now);
  lanes(now);
  table('refusals', 'Refusals by reason', 'Each got status 529 before it cost the engine anything, unless a policy only counts.',
    ['Reason', 'A second', 'Since the start', 'What happened'],
    now.refusals.filter(one => one.total).map(one => [words(one.reason), rate(one.per_second), number(one.total),
      one.carried_out ? 'refused' : 'only counted: the policy observes']));
  classes(now);
  table('decisions', 'Last decisions', 'Newest first, noted while this page is open.', ['When', 'Decision', 'Whose', 'Why', 'Waited'],
    now.decisions.slice(0, 16).map(one => [`${time(one.ago_ms / 1000)} ago`,
      { text: one.outcome, tone: { refused: 'bad', admitted: 'good', answered: 'good' }[one.outcome] },
      one.who, one.reason, one.waited_ms == null ? '–' : time(one.waited_ms / 1000)]));
}

// One sentence for a person who sees this for the first time.
function story({ concurrency: load, front, gates }) {
  if (!gates.length && !front) return 'Nothing is known yet.';
  if (front && !front.workers.length) return 'There is no worker.';
  if (load.fallback) return 'The engine has not told its size, and nobody set a limit: nothing is protected yet.';
  const engine = front ? 'The engines have' : 'The engine has';
  const refused = `${rate(load.refused_per_second)} requests a second are refused, so that the others are served in time.`;
  if (load.refused_per_second > 0) return `More comes than fits: ${refused}`;
  if (load.queued) return `${engine} no room for ${number(load.queued)} requests: they wait their turn at the gate.`;
  if (load.held) return `The policy holds ${number(load.held)} requests until they fit.`;
  if (load.running) return `${engine} room: requests enter at once.`;
  return 'Nothing to do: no request is in the engine.';
}

function workers({ front, gates }) {
  const rows = (front?.workers ?? []).map(one => {
    const gate = gates.find(gate => gate.worker === one.id);
    const over = Object.entries(one.over).map(([name, ranks]) => `${words(name)} on ${ranks} ${ranks === 1 ? 'rank' : 'ranks'}`);
    const why = over.length ? ` (${over.join(', ')})` : '';
    const refused = sum(['refused_worker', 'refused_rank', 'refused_class'], name => one.results[name] ?? 0);
    const of = (lane, limit) => gate ? { n: sum(gate.lanes, one => one[lane]), most: gate.limits[limit] * gate.ranks, alarm: lane === 'queued' } : '–';
    return [
      { href: `${one.url.replace(/\/$/, '')}/tidegate/`, text: `${one.id}: ${one.url}` },
      { text: words(one.state) + why + (one.stale ? ', load not heard lately' : ''), tone: one.state === 'free' ? 'good' : 'bad' },
      of('running', 'running'), of('queued', 'queued'),
      number(one.results.answered ?? 0), number(refused),
    ];
  });
  table('workers', 'Workers', 'A worker that refuses is left alone for a moment; its request goes to another one.',
    ['Worker', 'State', 'Running', 'Queued', 'Answered', 'Refused'], rows);
}

function queues({ front }) {
  const all = front?.queues ?? [];
  const rows = all.flatMap(queue => queue.classes.map(one => [
    `${queue.model}, ${one.name}`, number(one.held), one.wait ? one.wait.map(time).join(' · ') : '–', percent(one.attainment),
    number(one.admitted), number(sum(Object.values(one.refused), n => n))]));
  const observes = all.some(queue => queue.observes);
  table('queues', 'Held at the frontend', `While every worker is busy, requests wait in the queue of their class.${observes ? ' The policy observes: what it would hold or refuse is counted, and nobody waits.' : ''}`,
    ['Model and class', 'Held', 'Waited p50 · p99 · p99.9', 'Kept its promise', observes ? 'Would admit' : 'Admitted', observes ? 'Would refuse' : 'Refused'], rows);
}

function lanes({ gates, front }) {
  const rows = gates.flatMap(gate => gate.lanes.map(lane => {
    const whole = lane.rank === 'unspecified' ? gate.ranks : 1;
    const of = name => ({ n: lane[name], most: gate.limits[name] * whole, alarm: name === 'queued' });
    const rank = lane.rank === 'unspecified' ? 'no rank named' : `rank ${lane.rank}`;
    return [front ? `worker ${gate.worker}, ${rank}` : rank, of('running'), of('waiting'), of('queued'),
      number(lane.direct), number(lane.from_queue), number(lane.rejected_rank + lane.rejected_worker), number(lane.cancelled)];
  }));
  table('lanes', 'Ranks', 'Each against its limits. Requests that name no rank share the whole worker.',
    ['Rank', 'Running', 'Waiting', 'Queued', 'At once', 'Via queue', 'Refused', 'Left'], rows);
}

function classes({ gates, front }) {
  const policies = gates.filter(gate => gate.policy);
  const rows = policies.flatMap(gate => gate.policy.classes.map(one => [
    front ? `worker ${gate.worker}, ${one.name}` : one.name, number(one.held), `${rate(one.goodput)}/s`, percent(one.attainment),
    one.first_token.map(time).join(' · '), number(one.admitted), number(sum(Object.values(one.refused), n => n))]));
  const observes = policies.some(gate => gate.policy.observes);
  table('classes', 'Classes', `What each is promised and gets.${observes ? ' The policy observes: what it would admit or refuse is counted, and the gate alone decides.' : ''}`,
    ['Class', 'Held', 'Goodput', 'Kept its promise', 'First token p50 · p99 · p99.9', observes ? 'Would admit' : 'Admitted', observes ? 'Would refuse' : 'Refused'], rows);
}

let source;

function state(text, lost) {
  set($('connection'), text);
  document.body.classList.toggle('lost', lost);
}

function open() {
  source?.close();
  source = new EventSource('live');
  source.onmessage = event => {
    draw(JSON.parse(event.data));
    state('Live', false);
  };
  source.onerror = () => {
    state('Connection lost: trying again', true);
    // A browser gives up where the answer was an error.
    if (source.readyState === EventSource.CLOSED) setTimeout(open, 2000);
  };
}

// Nobody looks at a hidden page.
document.addEventListener('visibilitychange', () => document.hidden ? source?.close() : open());
open();
