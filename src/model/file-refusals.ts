import { Refusal } from './refusals.ts';

export const fileNotFound = (): Refusal =>
  new Refusal('FILE_NOT_FOUND', 'there is no such file or folder');

export const noSpace = (): Refusal =>
  new Refusal('NO_SPACE', 'there is no room left in the sandbox; what was there is as it was', {
    detail: { hint: 'most of what a sandbox can write to is in its memory; remove something' },
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
  new Refusal('PRECONDITION_FAILED', 'the file is not, or no longer, what the condition names');

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
    `${who} ${limit} requests for files under way, which is the most; wait for one to end`,
    { retryAfter: 1 },
  );

export const tooMuchOfClaims = (mib: number): Refusal =>
  new Refusal(
    'TOO_MANY_WAITING',
    `the files of your claims that are under way would take more than ${mib} MiB; wait for one`,
    { retryAfter: 1 },
  );
