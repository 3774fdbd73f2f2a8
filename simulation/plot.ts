import type { Sample, Summary } from './journal.ts';

export interface Panel {
  readonly title: string;
  readonly summary: Summary;
}

const WIDTH = 760;
const PANEL = 150;
const LEFT = 44;
const TOP = 34;
const GAP = 34;

const COLOURS = {
  running: '#3b6ea8',
  idle: '#a9c9e8',
  desired: '#333333',
  refused: '#c23b3b',
  grid: '#dddddd',
  text: '#333333',
};

/**
 * One panel below the other, on one scale: what ran and, above it, what was idle; what was desired;
 * and what was refused.
 */
export const plotOf = (title: string, panels: readonly Panel[]): string => {
  const highest = Math.max(
    1,
    ...panels.flatMap(({ summary: { samples } }) =>
      samples.map(({ desired, running }) => Math.max(desired, running)),
    ),
  );
  const height = TOP + panels.length * (PANEL + GAP) + 10;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="11" fill="${COLOURS.text}">`,
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
    `<text x="${LEFT}" y="18" font-size="14">${escaped(title)}</text>`,
    legend(),
    ...panels.flatMap((panel, index) =>
      panelOf(panel, TOP + GAP / 2 + index * (PANEL + GAP), highest),
    ),
    '</svg>',
    '',
  ].join('\n');
};

const legend = (): string =>
  (['running', 'idle', 'desired', 'refused'] as const)
    .map((name, index) => {
      const x = WIDTH - 290 + index * 74;
      return `<rect x="${x}" y="9" width="10" height="10" fill="${COLOURS[name]}"/><text x="${x + 14}" y="18">${name}</text>`;
    })
    .join('');

const panelOf = (
  { title, summary: { samples } }: Panel,
  top: number,
  highest: number,
): readonly string[] => {
  const bottom = top + PANEL;
  const y = (value: number): number => Math.round(bottom - (value / highest) * PANEL);
  const step = (WIDTH - LEFT - 10) / Math.max(1, samples.length);
  const refusedMost = Math.max(1, ...samples.map(({ refused }) => refused));
  const x = (index: number): number => Math.round(LEFT + index * step);
  const start = samples[0]?.at ?? 0;
  const hours = (((samples[1]?.at ?? 1) - start) * samples.length) / 3_600_000;
  return [
    ...[0, 0.5, 1].map(
      (share) =>
        `<path d="M${LEFT} ${y(share * highest)}H${WIDTH - 10}" stroke="${COLOURS.grid}"/><text x="${LEFT - 6}" y="${y(share * highest) + 4}" text-anchor="end">${Math.round(share * highest)}</text>`,
    ),
    ...hourMarks(hours).map(
      (hour) =>
        `<text x="${Math.round(LEFT + (hour / hours) * (WIDTH - LEFT - 10))}" y="${bottom + 13}" text-anchor="middle">${hour} h</text>`,
    ),
    `<path d="${areaOf(
      samples.map(({ running, idle }) => y(running + idle)),
      x,
      bottom,
    )}" fill="${COLOURS.idle}"/>`,
    `<path d="${areaOf(
      samples.map(({ running }) => y(running)),
      x,
      bottom,
    )}" fill="${COLOURS.running}"/>`,
    `<path d="${lineOf(
      samples.map(({ desired }) => y(desired)),
      x,
    )}" fill="none" stroke="${COLOURS.desired}"/>`,
    `<path d="${barsOf(samples, x, (refused) => Math.round((refused / refusedMost) * 30), top)}" stroke="${COLOURS.refused}" stroke-width="1.5"/>`,
    `<text x="${LEFT}" y="${top - 5}">${escaped(title)}</text>`,
  ];
};

const hourMarks = (hours: number): readonly number[] => {
  const each = Math.max(1, Math.ceil(hours / 12));
  return Array.from({ length: Math.floor(hours / each) + 1 }, (_, index) => index * each);
};

/** Steps, of which those that stay on one height are drawn as one. */
const lineOf = (heights: readonly number[], x: (index: number) => number): string => {
  let path = '';
  heights.forEach((height, index) => {
    if (index === 0) path += `M${x(0)} ${height}`;
    else if (height !== heights[index - 1]) path += `H${x(index)}V${height}`;
  });
  return `${path}H${x(heights.length)}`;
};

const areaOf = (heights: readonly number[], x: (index: number) => number, bottom: number): string =>
  `${lineOf(heights, x)}V${bottom}H${x(0)}Z`;

/** From above, so that they don't cover the rest. */
const barsOf = (
  samples: readonly Sample[],
  x: (index: number) => number,
  lengthOf: (refused: number) => number,
  top: number,
): string =>
  samples
    .map(({ refused }, index) =>
      refused === 0 ? '' : `M${x(index)} ${top}v${Math.max(2, lengthOf(refused))}`,
    )
    .join('');

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
