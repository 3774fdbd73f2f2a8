import pino from 'pino';
import type { DestinationStream, Logger, LoggerOptions } from 'pino';
import type { LevelledLog, LogLevel } from '../../contracts/log.ts';
import { sentenceOf } from '../../contracts/log-events.ts';
import { blankApiKeys } from '../../model/api-key-text.ts';

/**
 * Each line has `level`, `time` (ISO 8601, UTC), the constant fields, `eventCode`, the fields, and
 * the sentence of the event as `msg`.
 */
export interface ProcessLog extends LevelledLog {
  flush(): void;
}

/**
 * Buffers at most 1 MiB for a slow reader, then drops lines instead of blocking the daemon. Masks
 * secrets twice: fields by name down to the third level, and API keys anywhere.
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
  // A search for secrets at all depths costs more than the rest of a line.
  const ofPlainFields = pino({ ...options, level: 'trace' }, blanked);
  return pino(
    {
      ...options,
      hooks: {
        logMethod(args, method, levelNumber) {
          const [fields, eventCode] = args as unknown as [
            Readonly<Record<string, unknown>>,
            string,
          ];
          const all = { eventCode, ...fields };
          const label = pino.levels.labels[levelNumber];
          const sentence = sentenceOf(eventCode);
          if (label !== undefined && isPlain(fields))
            ofPlainFields[label as LogLevel](all, sentence);
          else method.call(this, all, sentence);
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
  readonly flushSync: () => void;
}

/**
 * Buffers at most 1 MiB for a slow reader or a full disk, then drops whole lines. Calls `lacking`
 * once, at the first failed write or dropped line.
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
  // Each line retries the write. A flush, also the library's own at exit, would retry forever.
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
    // Fails if nothing was written yet or the reader is gone; neither matters at exit.
    flushSync: () => {
      try {
        stream.flushSync();
      } catch {
        /* nothing to write */
      }
    },
  };
};

/** Replaces control characters by `?`. */
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
