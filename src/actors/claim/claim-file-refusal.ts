import { FileRefused } from '../../contracts/files.ts';
import { NotDone } from '../../contracts/not-done.ts';
import {
  ContainerGone,
  InstanceGone,
  NotJoinable,
  OutcomeUnknown,
} from '../../contracts/sandbox-driver.ts';
import { fileConflict } from '../../model/file-refusals.ts';
import { Refusal, unavailable } from '../../model/refusals.ts';
import { fileRefusalOf } from '../sandbox/commands/file-refusal.ts';

/** A file of a claim that was not written; `cause` says why. */
export class FileNotWritten extends Error {
  override readonly name = 'FileNotWritten';
  readonly index: number;

  constructor(index: number, cause: unknown) {
    super(`file ${index} of a claim was not written`, { cause });
    this.index = index;
  }
}

/**
 * Returns what the client is told where a file of its claim could not be written: why, and which
 * one by its field, and in `detail` what became of the claim. An error that is the daemon's own
 * fault stays what it is.
 */
export const claimFileRefusal = (
  error: unknown,
  detail: { readonly hint: string; readonly sandboxId?: string },
): unknown => {
  if (!(error instanceof FileNotWritten)) return error;
  const why = whyOf(error.cause);
  if (!why) return error.cause;
  const field = `files[${error.index}].path`;
  return new Refusal(why.code, `${field}: ${why.message}`, {
    detail: { field, ...detail },
    retryAfter: why.retryAfter,
  });
};

const whyOf = (error: unknown): Refusal | undefined => {
  if (error instanceof Refusal) return error;
  if (error instanceof FileRefused) {
    // The field is named anyway, and by what the claim calls it.
    if (error.problem === 'bad-path') return new Refusal('INVALID_ARGUMENT', error.message);
    // Whatever is there is replaced: a folder was to be made where something else is.
    if (error.problem === 'exists') return fileConflict('a part of the path is no folder');
    const told = fileRefusalOf(error, undefined);
    return told instanceof Refusal ? told : undefined;
  }
  if (error instanceof InstanceGone || error instanceof ContainerGone)
    return unavailable('the sandbox ended before it was written; claim again');
  if (error instanceof OutcomeUnknown)
    return unavailable('the way into the sandbox was lost while it was written');
  if (error instanceof NotJoinable) return unavailable(error.message);
  return error instanceof NotDone ? unavailable(error.told, error.retryAfterSeconds) : undefined;
};
