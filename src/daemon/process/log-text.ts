/**
 * A line of the log for people: the time of day, the level, the event, then the fields. Control
 * characters of what others said show as `?`.
 */
export const logText = (line: string): string => {
  const fields = fieldsOf(line);
  if (!fields) return line;
  const { time, level, msg, replica: _own, eventCode: _code, ...rest } = fields;
  const name = String(level);
  const said = Object.entries(rest).map(
    ([field, value]) => `${DIM}${field}=${PLAIN}${shown(value)}`,
  );
  return (
    `${DIM}${String(time).slice(11, 23)}${PLAIN} ` +
    `${COLOUR[name] ?? ''}${name.padEnd(5)}${PLAIN} ${[shown(msg), ...said].join(' ')}\n`
  );
};

const DIM = '\u001b[2m';
const PLAIN = '\u001b[0m';
const COLOUR: Readonly<Record<string, string>> = {
  trace: '\u001b[35m',
  debug: '\u001b[36m',
  info: '\u001b[32m',
  warn: '\u001b[33m',
  error: '\u001b[31m',
};

const shown = (value: unknown): string => {
  if (typeof value === 'string') return value.replaceAll(/\p{Cc}/gu, '?');
  // An error: what it says, then where it was thrown.
  if (isObject(value) && typeof value['stack'] === 'string')
    return `${value['stack'].replaceAll(/[^\P{Cc}\n]/gu, '?')}`;
  return JSON.stringify(value);
};

const fieldsOf = (line: string): Readonly<Record<string, unknown>> | undefined => {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
};

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
