import type { ByteRange, FileVersion } from '../../../contracts/files.ts';
import { fileChanged } from '../../../model/file-refusals.ts';
import { invalidArgument } from '../../../model/refusals.ts';
import { fileTag, versionsOf } from './presenter.ts';

type Header = (name: string) => string | undefined;

/** RFC 9110, 14.2: ignores several ranges and other units. */
export const rangeOf = (header: string | undefined): ByteRange | undefined => {
  const [, first = '', last = ''] =
    /^bytes=[ \t]*(\d{0,15})-(\d{0,15})[ \t]*$/.exec(header ?? '') ?? [];
  if (first === '') return last === '' || Number(last) === 0 ? undefined : { suffix: Number(last) };
  if (last === '') return { start: Number(first) };
  return Number(last) < Number(first) ? undefined : { start: Number(first), end: Number(last) };
};

/** Throws PRECONDITION_FAILED if `If-Match` names another version. */
export const isKnown = (version: FileVersion, header: Header): boolean => {
  const match = header('if-match');
  const tag = fileTag(version);
  if (match !== undefined && !names(match, tag)) throw fileChanged();
  const known = header('if-none-match');
  return known !== undefined && names(known.replaceAll('W/', ''), tag);
};

/** False if `If-Range` names another version: send the whole file. */
export const wantsRange = (version: FileVersion, header: Header): boolean => {
  const condition = header('if-range');
  return condition === undefined || condition.trim() === fileTag(version);
};

const names = (header: string, tag: string): boolean =>
  header.trim() === '*' || header.split(',').some((each) => each.trim() === tag);

/** Throws INVALID_ARGUMENT for an If-None-Match other than `*`. */
export const writeConditions = (
  header: Header,
  overwrite: boolean,
): {
  readonly overwrite: 'allowed' | 'refused' | 'condition';
  readonly ifMatch?: readonly FileVersion[] | 'any';
} => {
  const match = header('if-match');
  const none = header('if-none-match');
  if (none !== undefined && none.trim() !== '*')
    throw invalidArgument('If-None-Match', 'can only be * with PUT');
  return {
    overwrite: none === undefined ? (overwrite ? 'allowed' : 'refused') : 'condition',
    ifMatch: match === undefined ? undefined : versionsOf(match),
  };
};
