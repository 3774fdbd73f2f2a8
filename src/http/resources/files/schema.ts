import { z } from 'zod';
import { flag, maybe, name, queryInteger, timestamp } from '../../corridor/common-schema.ts';

/** Base64 length of a path of 4,095 bytes. The bytes are checked later. */
const LONGEST_PATH = 5_460;

export const pathText = z.string().meta({ minLength: 1, maxLength: LONGEST_PATH });
const base64 = maybe(flag).describe('`path` is base64 of its bytes, for names that are not UTF-8.');
const container = maybe(name).describe('Absent: the first container.');
export const PATH = 'Absolute, at most 4,095 bytes, without a part `..`.';

const target = { path: pathText.describe(PATH), base64, container };

const MODE_PATTERN = '^0?[0-7]{3,4}$';
/** Permission bits in octal. */
export const mode = z
  .string()
  .regex(new RegExp(MODE_PATTERN), 'must be permission bits in octal, such as 644 or 0755')
  .transform((text) => Number.parseInt(text, 8));

export const ReadFileQuery = z.object(target);

export const WriteFileQuery = z.object({
  ...target,
  mode: maybe(mode).describe(
    'Permission bits in octal. Absent: those of the file that is replaced, else 0644.',
  ),
  overwrite: maybe(flag).describe('`false`: 409 where something of that name is there.'),
  parents: maybe(flag).describe('Make the folders that are missing above it.'),
});

export const RemoveFileQuery = z.object({
  ...target,
  recursive: maybe(flag).describe('A folder with all that is in it.'),
});

export const ListFilesQuery = z.object({
  ...target,
  depth: queryInteger(1, 16).default(1).describe('1: what is in the folder itself.'),
  limit: queryInteger(1, 10_000).default(1_000).describe('Entries at most.'),
  cursor: maybe(z.string().meta({ maxLength: 8_192 })).describe(
    'Where to go on: the `nextCursor` of the page before.',
  ),
});

export const WatchFilesQuery = z.object({
  ...target,
  recursive: maybe(flag).describe('What is below as well, at most 1,024 folders.'),
});

const bodyTarget = {
  base64: maybe(z.boolean()).describe('Paths are base64 of their bytes.'),
  container,
};

export const MoveFileBody = z.object({
  from: pathText.describe(PATH),
  to: pathText.describe('Likewise. The name itself, not a folder to move it into.'),
  overwrite: maybe(z.boolean()).describe('Replace what is there. Absent: no.'),
  ...bodyTarget,
});

export const MakeFolderBody = z.object({
  path: pathText.describe(PATH),
  mode: maybe(mode).describe('Permission bits in octal. Absent: 0755.'),
  parents: maybe(z.boolean()).describe('Make those above too, and take a folder that is there.'),
  ...bodyTarget,
});

export const FileInfo = z
  .object({
    path: z.string().describe('Absolute.'),
    base64: z
      .literal(true)
      .optional()
      .describe('The path is no UTF-8: it is given as base64 of its bytes.'),
    kind: z.enum(['File', 'Folder', 'Link', 'Other']),
    size: z.int(),
    mode: z.string().describe('Permission bits in octal, such as `0644`.'),
    uid: z.int(),
    gid: z.int(),
    modifiedAt: timestamp,
    etag: z.string().optional().describe('Of a file: what `GET` answers as its `ETag`.'),
    target: z.string().optional().describe('What a link says.'),
    targetBase64: z.literal(true).optional().describe('`target` is base64 of its bytes.'),
  })
  .meta({ id: 'FileInfo' });

export const FileEnvelope = z.object({ file: FileInfo });

export const WrittenEnvelope = z.object({
  file: FileInfo.optional().describe('The file that was written.'),
  archive: z
    .object({ entries: z.int(), bytes: z.int().describe('Of files.') })
    .optional()
    .describe('What was unpacked, where the body was an archive.'),
});

export const FileContent = z.string().meta({ id: 'FileContent', format: 'binary' });

export const FileDeletion = z.object({ path: z.string(), status: z.literal('deleted') });

export const FileList = z
  .object({
    items: z.array(FileInfo),
    nextCursor: z.string().optional().describe('Absent at the end.'),
  })
  .meta({ id: 'FileList' });

export const FileEventInfo = z
  .object({
    type: z
      .enum(['created', 'changed', 'removed', 'attributes', 'overflow', 'gone'])
      .describe('`overflow`: some were missed, look anew. `gone`: the folder is no more.'),
    path: z.string().describe('Below the folder; empty for itself.'),
    base64: z.literal(true).optional().describe('`path` is base64 of its bytes.'),
    isFolder: z.boolean(),
  })
  .meta({ id: 'FileEvent' });

export type FileInfoWire = z.infer<typeof FileInfo>;
export type FileListWire = z.infer<typeof FileList>;
export type FileEventWire = z.infer<typeof FileEventInfo>;
