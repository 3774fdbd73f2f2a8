import pino from 'pino';
import type { DestinationStream, Logger, LoggerOptions } from 'pino';
import type { LevelledLog, LogLevel } from '../../contracts/log.ts';
import { eventCodeOf } from '../../contracts/log-events.ts';
import { blankApiKeys } from '../../model/api-key-text.ts';

/**
 * The process's log: JSON lines (on a terminal text for people), each with `level`, `time` (ISO
 * 8601, UTC), what every line has, the event's code as `eventCode`, the fields, and the event as
 * `msg`.
 */
export interface ProcessLog extends LevelledLog {
  /** Writes out what is still in memory, before the process ends. */
  flush(): void;
}

/**
 * Lines go to standard error, in the background: at most 1 MiB waits for a slow reader, then lines
 * are dropped rather than the daemon held up. Secrets are blanked twice: fields by their name, down
 * to the third level, and API keys wherever they stand.
 */
export const createLog = (
  level: LogLevel,
  always: Readonly<Record<string, string>> = {},
  destination: DestinationStream & { flushSync?: () => void } = standardError(),
): ProcessLog => {
  const logger = loggerTo(destination, level, always);
  return {
    get level() {
      return level;
    },
    set level(next) {
      level = next;
      logger.level = next;
    },
    get detailed() {
      return logger.isLevelEnabled('debug');
    },
    trace: (fields, event) => {
      logger.trace(fields, event);
    },
    debug: (fields, event) => {
      logger.debug(fields, event);
    },
    info: (fields, event) => {
      logger.info(fields, event);
    },
    warn: (fields, event) => {
      logger.warn(fields, event);
    },
    error: (fields, event) => {
      logger.error(fields, event);
    },
    flush: () => {
      destination.flushSync?.();
    },
  };
};

const loggerTo = (
  destination: DestinationStream,
  level: LogLevel,
  always: Readonly<Record<string, string>>,
): Logger => {
  const blanked: DestinationStream = {
    write: (line) => {
      destination.write(blankApiKeys(line));
    },
  };
  const options: LoggerOptions = {
    level,
    base: always,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { error: pino.stdSerializers.err, cause: pino.stdSerializers.err },
  };
  // To look for secrets in all depths costs more than the rest of a line.
  const ofPlainFields = pino({ ...options, level: 'trace' }, blanked);
  return pino(
    {
      ...options,
      hooks: {
        // Called for lines that are written, and for no others.
        logMethod(args, method, levelNumber) {
          const [fields, event] = args as unknown as [Readonly<Record<string, unknown>>, string];
          const eventCode = eventCodeOf(event);
          const all = eventCode === undefined ? fields : { eventCode, ...fields };
          const label = pino.levels.labels[levelNumber];
          if (label !== undefined && isPlain(fields)) ofPlainFields[label as LogLevel](all, event);
          else method.call(this, all, event);
        },
      },
      redact: { paths: SECRET_PATHS, censor: '[secret]' },
    },
    blanked,
  );
};

const WAITING_LIMIT_BYTES = 1_048_576;

const SECRETS = [
  'apiKey',
  'secret',
  'token',
  'password',
  'pepper',
  'authorization',
  'cookie',
  '["service-api-key"]',
  '["SERVICE-API-KEY"]',
];
const SECRET_NAMES: ReadonlySet<string> = new Set(
  SECRETS.map((name) => name.replaceAll(/[[\]"]/g, '')),
);
/** Whether nothing in it can hold anything else, and nothing is called as secrets are. */
const isPlain = (fields: Readonly<Record<string, unknown>>): boolean => {
  for (const name in fields)
    if (typeof fields[name] === 'object' || SECRET_NAMES.has(name)) return false;
  return true;
};
const SECRET_PATHS = SECRETS.flatMap((name) =>
  ['', '*', '*.*'].map((above) =>
    above === '' ? name : name.startsWith('[') ? `${above}${name}` : `${above}.${name}`,
  ),
);

const standardError = (): LineOutput => {
  const output = lineOutput(2);
  return {
    ...output,
    write: (line) => {
      output.write(process.stderr.isTTY ? logText(line) : line);
    },
  };
};

export interface LineOutput {
  readonly write: (text: string) => void;
  /** Writes out what is still in memory, before the process ends. */
  readonly flushSync: () => void;
}

/**
 * Writes whole lines to an open descriptor in the background: at most 1 MiB waits for a slow reader
 * or a full disk, then lines are dropped. `lacking` is called once, when the first write fails or
 * the first line is dropped.
 */
export const lineOutput = (descriptor: number, lacking = (): void => undefined): LineOutput => {
  const stream = pino.destination({
    dest: descriptor,
    sync: false,
    maxLength: WAITING_LIMIT_BYTES,
  });
  let [isFailing, isTold] = [false, false];
  const tell = (): void => {
    if (!isTold) lacking();
    isTold = true;
  };
  // Each line tries again. A flush, also the library's own at the end, would try for ever.
  const flush = stream.flushSync.bind(stream);
  stream.flushSync = () => {
    if (!isFailing) flush();
  };
  stream.on('write', () => (isFailing = false));
  stream.on('error', () => {
    isFailing = true;
    tell();
  });
  stream.once('drop', tell);
  return {
    write: (text) => {
      stream.write(text);
    },
    // Fails where nothing was written yet, or where the reader is gone; neither matters at the end.
    flushSync: () => {
      try {
        stream.flushSync();
      } catch {
        /* nothing to write */
      }
    },
  };
};

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
