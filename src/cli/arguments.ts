import { InvalidArgumentError } from 'commander';
import { parseDuration } from '../model/durations.ts';

/** A parser for commander: a whole number within bounds. */
export const wholeNumber = (least: number, most: number) => (text: string): number => {
  const value = /^[0-9]{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= most)) throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  return value;
};

export const durationText = (text: string): string => {
  if (parseDuration(text) === undefined) throw new InvalidArgumentError('It must be a duration such as 90s, 30m or 1h30m; 0 is never.');
  return text;
};

/** `NAME=VALUE`, repeatable. */
export const nameAndValue = (text: string, before: Readonly<Record<string, string>> | undefined): Readonly<Record<string, string>> => {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('It must be NAME=VALUE.');
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
};
