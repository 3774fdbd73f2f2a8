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

export const IDLE_TIMEOUT =
  'End the sandbox after it was idle for this long. `"0"`, `0` and null mean never.';
export const idleTimeout = z.union([duration, z.literal(0), z.null()], {
  error: 'must be a duration such as 90s, 30m or 1h30m; "0", 0 and null are never',
});

/** Does not limit the total. */
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

/** Also the filter of a list. */
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

/** Base64 of 256 KiB, which are checked later. */
const LONGEST_CONTENT = 349_528;

const claimFile = z.object({
  path: pathText.describe(PATH),
  content: z
    .string()
    .meta({ maxLength: LONGEST_CONTENT })
    .describe('Content of the file, in the form that `encoding` names.'),
  encoding: maybe(z.enum(['utf8', 'base64'])).describe(
    '`base64`: `content` is base64 with padding. Default: `utf8`.',
  ),
  mode: maybe(mode).describe(
    'Permission bits in octal. Default: those of the replaced file, or 0644.',
  ),
});
export type ClaimFileBody = z.infer<typeof claimFile>;

/** The row requires `poolName`, with its own message. */
export const ClaimBody = z
  .object({
    poolName: maybe(text(MAX_REFERENCE).meta({ minLength: 1 })).describe(
      'The pool to claim from; or an env, for the member with the highest `priority` that ' +
        'has an idle instance. Without it the answer is 400 with the message `poolName is ' +
        'required`.',
    ),
    idleTimeout: maybe(idleTimeout).describe(
      `${IDLE_TIMEOUT} Default: the template's idle timeout.`,
    ),
    waitTimeoutSeconds: maybe(z.int().min(0).max(300)).describe(
      'How long to wait for an instance if none is idle, in seconds, first come, first ' +
        'served. Default: 0, which does not wait.',
    ),
    autoResume: maybe(z.boolean()).describe(
      'Resume a paused sandbox when a call needs it running. Default: false, and such calls ' +
        'get 409.',
    ),
    env: maybe(
      variables(MOST_VARIABLE_BYTES).refine(
        (env) => bytesOfPairs(env) <= MOST_VARIABLE_BYTES,
        `must have names and values of at most ${MOST_VARIABLE_BYTES} bytes together`,
      ),
    ).describe(
      'Variables for commands and terminals in the sandbox, which take precedence over ' +
        'those of the template: at most 128, with 64 KiB in total. The main process does not ' +
        'get them, because it is already running. They are stored encrypted, and never shown.',
    ),
    metadata: maybe(metadata).describe(
      'Labels by which lists find the sandbox: at most 64 pairs, with 4 KiB in total. ' +
        'Everyone who can see the sandbox sees them, so they must not contain secrets.',
    ),
    files: maybe(z.array(claimFile).max(MOST_FILES)).describe(
      'Files to write before the answer: at most 16, with 256 KiB in total. Missing parent ' +
        'folders are created. If a file cannot be written, the claim is undone, and ' +
        '`detail.field` names the file.',
    ),
  })
  .meta({ required: ['poolName'] });
