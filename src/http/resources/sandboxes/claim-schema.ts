import { z } from 'zod';
import {
  bytesOfPairs,
  MOST_FILES,
  MOST_METADATA,
  MOST_METADATA_BYTES,
  MOST_VARIABLE_BYTES,
  MOST_VARIABLES,
  VARIABLE_NAME,
} from '../../../model/claim-terms.ts';
import { duration, MAX_REFERENCE, maybe, text } from '../../corridor/common-schema.ts';
import { mode, PATH, pathText } from '../files/schema.ts';

export const IDLE_TIMEOUT = 'End it after so long without activity; `"0"`, `0` and null are never.';
export const idleTimeout = z.union([duration, z.literal(0), z.null()], {
  error: 'must be a duration such as 90s, 30m or 1h30m; "0", 0 and null are never',
});

/**
 * Variables by name. Each value has at most `longest` characters; the total is not limited here.
 */
export const variables = (longest: number) =>
  z
    .record(z.string(), text(longest))
    .refine(
      (env) => Object.keys(env).every((key) => VARIABLE_NAME.test(key)),
      'must have names of letters, digits and underscores',
    )
    .refine(
      (env) => Object.keys(env).length <= MOST_VARIABLES,
      `must have at most ${MOST_VARIABLES} entries`,
    )
    .meta({
      maxProperties: MOST_VARIABLES,
      propertyNames: { type: 'string', pattern: VARIABLE_NAME.source },
    });

const METADATA_KEY = /^[^\0-\x1f\x7f]{1,256}$/;

/** Metadata of a claim, or the metadata filter of a list. */
export const metadata = z
  .record(z.string(), text(MOST_METADATA_BYTES))
  .refine(
    (pairs) => Object.keys(pairs).every((key) => METADATA_KEY.test(key)),
    'must have keys of 1 to 256 characters, none of them a control character',
  )
  .refine(
    (pairs) => Object.keys(pairs).length <= MOST_METADATA,
    `must have at most ${MOST_METADATA} entries`,
  )
  .refine(
    (pairs) => bytesOfPairs(pairs) <= MOST_METADATA_BYTES,
    `must have keys and values of at most ${MOST_METADATA_BYTES} bytes together`,
  )
  .meta({
    maxProperties: MOST_METADATA,
    propertyNames: { type: 'string', pattern: METADATA_KEY.source },
  });

/** Base64 length of 256 KiB. The byte count is checked later. */
const LONGEST_CONTENT = 349_528;

const claimFile = z.object({
  path: pathText.describe(PATH),
  content: z
    .string()
    .meta({ maxLength: LONGEST_CONTENT })
    .describe('What is in it: text, or what `encoding` says.'),
  encoding: maybe(z.enum(['utf8', 'base64'])).describe(
    '`base64`: `content` is base64 of the bytes, with its padding. Left out: `utf8`.',
  ),
  mode: maybe(mode).describe(
    'Permission bits in octal. Left out: those of the file that is replaced, else 0644.',
  ),
});
export type ClaimFileBody = z.infer<typeof claimFile>;

/** `poolName` is required. The row checks it, with its own message. */
export const ClaimBody = z
  .object({
    poolName: maybe(text(MAX_REFERENCE).meta({ minLength: 1 })).describe(
      'The pool to claim from, or an env: then it is from a member with an idle instance, the ' +
        'highest `priority` first. Without it the answer is 400 with the message `poolName is ' +
        'required`.',
    ),
    idleTimeout: maybe(idleTimeout).describe(`${IDLE_TIMEOUT} Left out: what the template says.`),
    waitTimeoutSeconds: maybe(z.int().min(0).max(300)).describe(
      'Wait for so long for an instance where none is idle, first come first served. Left ' +
        'out or 0: the answer comes at once.',
    ),
    autoResume: maybe(z.boolean()).describe(
      'A call that needs the sandbox running ends its pause. Left out or false: such a call is ' +
        '409.',
    ),
    env: maybe(
      variables(MOST_VARIABLE_BYTES).refine(
        (env) => bytesOfPairs(env) <= MOST_VARIABLE_BYTES,
        `must have names and values of at most ${MOST_VARIABLE_BYTES} bytes together`,
      ),
    ).describe(
      'Variables of commands and terminals in the sandbox, over those of the template: at most ' +
        '128, of 64 KiB together. The main process runs already, and does not have them. They ' +
        'are kept sealed, and never shown.',
    ),
    metadata: maybe(metadata).describe(
      'What the claim says of its sandbox, by which lists find it: at most 64 pairs, of 4 KiB ' +
        'together. Shown to whoever sees the sandbox: no place for secrets.',
    ),
    files: maybe(z.array(claimFile).max(MOST_FILES)).describe(
      'Files that are in the sandbox before the answer: at most 16, of 256 KiB together. Folders ' +
        'that are missing above them are made. Where one can not be written the claim is given ' +
        'back, and `detail.field` names it.',
    ),
  })
  .meta({ required: ['poolName'] });
