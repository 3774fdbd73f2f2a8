import { FileRefused, type FileProblem } from '../../contracts/files.ts';
import { NotJoinable } from '../../contracts/sandbox-driver.ts';

/**
 * Tells problems by the words of tools, which are those of the C libraries of Debian and Alpine,
 * and by those of our scripts.
 */
const WORDS: readonly (readonly [RegExp, FileProblem, string])[] = [
  [/^lacking (.*)/, 'unsupported', 'the container has no program that files need'],
  [/no space left|quota exceeded|file too large/i, 'no-space', 'there is no room in the sandbox'],
  [/too long|too many levels|symbolic link loop/i, 'bad-path', 'the path is too long, or loops'],
  [/not empty/i, 'not-empty', 'the folder is not empty'],
  [/cross-device|subdirectory of itself/i, 'cannot-move', 'it can not be moved there'],
  [/invalid argument/i, 'cannot-move', 'it can not be moved there'],
  [/has changed/, 'changed', 'it is not the version that was named'],
  [/is a directory|overwrite directory/i, 'is-a-folder', 'it is a folder'],
  [/not a directory/i, 'not-a-folder', 'it is no folder, or a part of the path is none'],
  [/not a file/, 'not-a-file', 'it is no file, but a device, a fifo or a socket'],
  [/file exists/i, 'exists', 'there is something of that name already'],
  [/busy/i, 'busy', 'it is in use'],
  [
    /denied|not permitted|read-only/i,
    'denied',
    "the sandbox's user may not do that there, or it is read-only",
  ],
  [/no such file|nonexistent/i, 'not-found', 'there is no such file or folder'],
];

/** The refusal that a script's last words mean; undefined where they are none. */
export const refusalIn = (answer: string): Error | undefined => {
  const why = /(?:^|\n)! ([^\n]*)/.exec(answer)?.[1];
  if (why === undefined) return undefined;
  const found = WORDS.find(([pattern]) => pattern.test(why));
  if (!found) return new NotJoinable('the file system of the sandbox failed');
  const [pattern, problem, told] = found;
  const which = problem === 'unsupported' ? `: ${pattern.exec(why)?.[1] ?? ''}` : '';
  return new FileRefused(problem, told + which);
};
