import { FileRefused, type FileProblem } from '../files.ts';
import { NotJoinable } from '../sandbox-driver.ts';

const TOLD: Readonly<Partial<Record<FileProblem, string>>> = {
  'not-found': 'there is no such file or folder',
  exists: 'there is something of that name already',
  changed: 'it was changed meanwhile, or is not the version that was named',
  'is-a-folder': 'it is a folder',
  'not-a-folder': 'it is no folder, or a part of the path is none',
  'not-a-file': 'it is no file or folder, but a device, a fifo or a socket',
  'not-empty': 'the folder is not empty',
  denied: "the sandbox's user may not do that there",
  'no-space': 'there is no room left in the sandbox',
  'cannot-move': 'it can not be moved there: to another file system, or into itself',
  busy: 'it is in use',
  'bad-path': 'the path is too long, or has too many links',
  'bad-range': 'the range begins behind the end of the file',
  'bad-cursor': 'the cursor is none that was answered for this path',
  'bad-archive': 'the archive can not be unpacked',
  'no-metadata':
    'files have no metadata there: the file system has no extended attributes, like tmpfs ' +
    'before Linux 6.6; write the file without it',
  'too-many': 'too much is being done with the files of this sandbox',
};

/** Control characters, which a name inside may have. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;
const MOST_DETAIL = 400;

/** Returns the word of a refusal. */
export const wordOf = (payload: Buffer): string => {
  const end = payload.indexOf(0);
  return payload.toString('latin1', 0, end < 0 ? payload.length : end);
};

/** Returns what a refusal of the agent means: a word, and behind a NUL what it says of it. */
export const refusalOf = (payload: Buffer): Error => {
  const end = payload.indexOf(0);
  const word = wordOf(payload);
  const detail = end < 0 ? '' : payload.toString('utf8', end + 1);
  const problem = word as FileProblem;
  const told = Object.hasOwn(TOLD, word) ? TOLD[problem] : undefined;
  if (told === undefined) return new NotJoinable('the file system of the sandbox failed');
  if (problem === 'bad-range' && /^\d{1,16}$/.test(detail))
    return new FileRefused(problem, told, Number(detail));
  const shown = detail.replaceAll(UNPRINTABLE, '\uFFFD').slice(0, MOST_DETAIL);
  return new FileRefused(problem, shown === '' ? told : shown);
};
