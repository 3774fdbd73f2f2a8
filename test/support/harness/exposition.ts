export interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Exposition {
  readonly all: readonly Series[];
  /** Each once; histograms with `_bucket`, `_sum` and `_count`. */
  readonly names: readonly string[];
  named(name: string): readonly Series[];
  /** Sum of the series with these labels; undefined without one. */
  value(name: string, labels?: Readonly<Record<string, string>>): number | undefined;
}

/** Text format 0.0.4. Throws for an invalid line. */
export const seriesOf = (text: string): Exposition => {
  const all = text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map(lineOf);
  return {
    all,
    names: [...new Set(all.map(({ name }) => name))],
    named: (name) => all.filter((series) => series.name === name),
    value: (name, labels = {}) => {
      const found = all.filter(
        (series) =>
          series.name === name &&
          Object.entries(labels).every(([label, value]) => series.labels[label] === value),
      );
      return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
    },
  };
};

const LINE =
  /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"/g;

const lineOf = (line: string): Series => {
  const [, name, labels = '', value] = LINE.exec(line) ?? [];
  if (name === undefined || value === undefined) throw new Error(`no line of metrics: ${line}`);
  const named = [...labels.matchAll(LABEL)].map(([, label = '', text = '']) => [
    label,
    text.replaceAll(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped)),
  ]);
  return {
    name,
    labels: Object.fromEntries(named) as Record<string, string>,
    value: value === '+Inf' ? Number.POSITIVE_INFINITY : Number(value),
  };
};
