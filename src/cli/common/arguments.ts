import { InvalidArgumentError, Option } from 'commander';
import { parseDuration } from '../../model/durations.ts';

export const wholeNumber =
  (least: number, most: number) =>
  (text: string): number => {
    const value = /^[0-9]{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= least && value <= most))
      throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
    return value;
  };

export const replicaCount = wholeNumber(0, 10_000);

export const positiveNumber = (text: string): number => {
  const value = /^[0-9]{1,6}(\.[0-9]{1,6})?$/.test(text) ? Number(text) : 0;
  if (value <= 0) throw new InvalidArgumentError('It must be a number above 0, such as 2 or 0.5.');
  return value;
};

export const durationText = (text: string): string => {
  if (parseDuration(text) === undefined)
    throw new InvalidArgumentError('It must be a duration such as 90s, 30m or 1h30m; 0 is never.');
  return text;
};

/** From 1 s up to a maximum. */
export const wholeSeconds =
  (most: number) =>
  (text: string): number => {
    const ms = parseDuration(text);
    if (ms === undefined || ms < 1_000 || ms > most * 1_000 || ms % 1_000 !== 0)
      throw new InvalidArgumentError(
        `It must be a duration of whole seconds from 1s to ${most}s, such as 30s or 10m.`,
      );
    return ms / 1_000;
  };

const MAX_WAIT_MS = 300_000;

const waitTime = (text: string): number => {
  const ms = parseDuration(text);
  if (ms === undefined || ms > MAX_WAIT_MS || ms % 1_000 !== 0)
    throw new InvalidArgumentError(
      'It must be a duration of whole seconds, 5m at most, such as 30s.',
    );
  return ms / 1_000;
};

/** After a burst, a pool stays empty until its new instances have started. */
export const waitOption = (): Option =>
  new Option('--wait <duration>', 'how long to wait if no instance is idle: 0 to 5m')
    .argParser(waitTime)
    .default(10, '10s');

export const nameAndValue = (
  text: string,
  before: Readonly<Record<string, string>> | undefined,
): Readonly<Record<string, string>> => {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('It must be NAME=VALUE.');
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
};
