import { z } from 'zod';
import { flag, maybe, name, queryInteger, timestamp } from '../../corridor/common-schema.ts';

/** Base64 of 4,095 bytes, which are checked later. */
const LONGEST_PATH = 5_460;

export const pathText = z.string().meta({ minLength: 1, maxLength: LONGEST_PATH });
const base64 = maybe(flag).describe('`path` is in base64, for names that are not UTF-8.');
const container = maybe(name).describe('Default: the first container.');
export const PATH = 'Absolute path of at most 4,095 bytes, without `..`.';

const target = { path: pathText.describe(PATH), base64, container };

const MODE_PATTERN = '^0?[0-7]{3,4}$';
export const mode = z
  .string()
  .regex(new RegExp(MODE_PATTERN), 'must be permission bits in octal, such as 644 or 0755')
  .transform((text) => Number.parseInt(text, 8));

export const ReadFileQuery = z.object(target);

export const WriteFileQuery = z.object({
  ...target,
  mode: maybe(mode).describe(
    'Permission bits in octal. Default: those of the replaced file, or 0644.',
  ),
  overwrite: maybe(flag).describe('`false`: 409 if the file exists.'),
  parents: maybe(flag).describe('Create missing parent folders.'),
});

export const RemoveFileQuery = z.object({
  ...target,
  recursive: maybe(flag).describe('Remove a folder with everything in it.'),
});

export const ListFilesQuery = z.object({
  ...target,
  depth: queryInteger(1, 16)
    .default(1)
    .describe('Number of levels to list. 1 lists only the entries of the folder itself.'),
  limit: queryInteger(1, 10_000).default(1_000).describe('Maximum number of entries.'),
  cursor: maybe(z.string().meta({ maxLength: 8_192 })).describe(
    '`nextCursor` of the previous page.',
  ),
});

export const WatchFilesQuery = z.object({
  ...target,
  recursive: maybe(flag).describe('Also watch the folders below it, at most 1,024.'),
});

const bodyTarget = {
  base64: maybe(z.boolean()).describe('Paths are in base64.'),
  container,
};

export const MoveFileBody = z.object({
  from: pathText.describe(PATH),
  to: pathText.describe('New path, in the same form; not a folder to move it into.'),
  overwrite: maybe(z.boolean()).describe('Replace an existing file. Default: false.'),
  ...bodyTarget,
});

export const MakeFolderBody = z.object({
  path: pathText.describe(PATH),
  mode: maybe(mode).describe('Permission bits in octal. Default: 0755.'),
  parents: maybe(z.boolean()).describe(
    'Create missing parent folders, and accept an existing folder.',
  ),
  ...bodyTarget,
});

export const FileInfo = z
  .object({
    path: z.string().describe('Absolute path.'),
    base64: z.literal(true).optional().describe('The path is not UTF-8, and is given in base64.'),
    kind: z.enum(['File', 'Folder', 'Link', 'Other']),
    size: z.int(),
    mode: z.string().describe('Permission bits in octal, such as `0644`.'),
    uid: z.int(),
    gid: z.int(),
    modifiedAt: timestamp,
    etag: z.string().optional().describe('For a file: its `ETag`, as `GET` answers it.'),
    target: z.string().optional().describe('For a link: its target.'),
    targetBase64: z.literal(true).optional().describe('`target` is in base64.'),
  })
  .meta({ id: 'FileInfo' });

export const FileEnvelope = z.object({ file: FileInfo });

export const WrittenEnvelope = z.object({
  file: FileInfo.optional().describe('The file that was written.'),
  archive: z
    .object({ entries: z.int(), bytes: z.int().describe('Total size of the unpacked files.') })
    .optional()
    .describe('Unpacked entries, if the body was an archive.'),
});

export const FileContent = z.string().meta({ id: 'FileContent', format: 'binary' });

export const FileDeletion = z.object({ path: z.string(), status: z.literal('deleted') });

export const FileList = z
  .object({
    items: z.array(FileInfo),
    nextCursor: z.string().optional().describe('Absent on the last page.'),
  })
  .meta({ id: 'FileList' });

export const FileEventInfo = z
  .object({
    type: z
      .enum(['created', 'changed', 'removed', 'attributes', 'overflow', 'gone'])
      .describe(
        '`overflow`: some events were missed; list the folder again. `gone`: the folder no ' +
          'longer exists.',
      ),
    path: z.string().describe('Relative to the folder. Empty for the folder itself.'),
    base64: z.literal(true).optional().describe('`path` is in base64.'),
    isFolder: z.boolean(),
  })
  .meta({ id: 'FileEvent' });

export type FileInfoWire = z.infer<typeof FileInfo>;
export type FileListWire = z.infer<typeof FileList>;
export type FileEventWire = z.infer<typeof FileEventInfo>;
