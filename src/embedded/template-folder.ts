import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { TemplateFile, TemplateSource } from '../contracts/template-source.ts';

const FILES_LIMIT = 1_000;
const FILE_LIMIT_BYTES = 262_144;

/** Reads `*.json` by name. Skips subfolders and dotfiles. */
export const templateFolder = (folder: string): TemplateSource => ({
  read: async () => {
    const names = (
      await readdir(folder).catch((cause: unknown) => {
        throw unreadable(folder, cause);
      })
    )
      .filter((name) => name.endsWith('.json') && !name.startsWith('.'))
      .sort();
    if (names.length > FILES_LIMIT)
      throw new Error(`the template folder ${folder} holds more than ${FILES_LIMIT} files`);
    const files: TemplateFile[] = [];
    for (const name of names) files.push(await readOne(join(folder, name)));
    return files;
  },
});

const readOne = async (file: string): Promise<TemplateFile> => {
  try {
    const { size } = await stat(file);
    if (size > FILE_LIMIT_BYTES)
      throw new Error(`it is larger than ${FILE_LIMIT_BYTES / 1_024} KiB`);
    return { file, text: await readFile(file, 'utf8') };
  } catch (cause) {
    throw unreadable(file, cause);
  }
};

const unreadable = (path: string, cause: unknown): Error =>
  new Error(
    `can't read templates from ${path}: ${cause instanceof Error ? cause.message : String(cause)}`,
    { cause },
  );
