import { Refusal } from './refusals.ts';

export const fileNotFound = (): Refusal =>
  new Refusal('FILE_NOT_FOUND', 'there is no such file or folder');

export const noSpace = (): Refusal =>
  new Refusal('NO_SPACE', 'the sandbox has no space left; existing data is unchanged', {
    detail: { hint: 'most files of a sandbox are in memory; delete some of them' },
  });

export const rangeNotSatisfiable = (size: number): Refusal =>
  new Refusal('RANGE_NOT_SATISFIABLE', 'the range begins after the end of the file', {
    detail: { size },
  });

export const fileConflict = (message: string, hint?: string): Refusal =>
  new Refusal('CONFLICT', message, hint === undefined ? {} : { detail: { hint } });

export const fileExists = (): Refusal =>
  new Refusal('ALREADY_EXISTS', 'a file or folder of that name exists already');

export const fileChanged = (): Refusal =>
  new Refusal('PRECONDITION_FAILED', "the file's version does not match the condition");

export const fileDenied = (): Refusal =>
  new Refusal('FORBIDDEN', "the sandbox's user does not have permission");

const METADATA = 'metadata';

export const metadataNotKept = (message: string): Refusal =>
  new Refusal('INVALID_ARGUMENT', message, { detail: { field: METADATA } });

export const isMetadataNotKept = (error: unknown): error is Refusal =>
  error instanceof Refusal && error.detail?.['field'] === METADATA;

export const noFilesHere = (message: string): Refusal =>
  new Refusal('FEATURE_DISABLED', message, {
    detail: { hint: 'run a command in the sandbox instead, such as tar or cat' },
  });

export const tooManyFiles = (
  who: 'the sandbox has' | 'you have' | 'the replica has',
  limit: number,
): Refusal =>
  new Refusal(
    'TOO_MANY_STREAMS',
    `${who} ${limit} file requests in progress, which is the maximum; wait for one to end`,
    { retryAfter: 1 },
  );

export const tooMuchOfClaims = (mib: number): Refusal =>
  new Refusal(
    'TOO_MANY_WAITING',
    `the files of your claims in progress would exceed ${mib} MiB; wait for one of the claims`,
    { retryAfter: 1 },
  );
