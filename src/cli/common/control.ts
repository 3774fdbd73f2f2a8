import { closeSync, openSync } from 'node:fs';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { CliFailure, START_HINT } from './failure.ts';

const FIRST_ANSWER_MS = 15 * 60_000;

/** Rejects with CliFailure if the daemon refuses or is not running. */
export const askDaemon = async (
  dataDir: string,
  path: string,
  { signal, body }: { readonly signal: AbortSignal; readonly body?: object },
): Promise<IncomingMessage> => {
  const folder = openFolder(dataDir);
  try {
    // Through the folder's descriptor, since a socket's path may have only 107 bytes.
    const asking = request({
      socketPath: `/proc/self/fd/${folder}/control.sock`,
      // another folder may get the same path later
      agent: false,
      method: 'POST',
      path,
      signal,
      timeout: FIRST_ANSWER_MS,
    });
    asking
      .once('timeout', () => asking.destroy(new Error('the daemon did not answer')))
      .end(body === undefined ? '' : JSON.stringify(body));
    const [answer] = (await once(asking, 'response')) as [IncomingMessage];
    if (answer.statusCode === 200) return answer;
    throw new CliFailure(`the daemon refused: ${await refusalOf(answer)}`);
  } catch (error) {
    signal.throwIfAborted();
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT' || code === 'ECONNREFUSED')
      throw new CliFailure(
        `no daemon is running on the data folder ${dataDir}`,
        [START_HINT, 'or name another folder with --data-dir DIR'],
        { cause: error },
      );
    if (code === 'EACCES')
      throw new CliFailure(
        `the daemon of ${dataDir} belongs to another user`,
        ['run this command as that user'],
        { cause: error },
      );
    throw error;
  } finally {
    closeSync(folder);
  }
};

const openFolder = (dataDir: string): number => {
  try {
    return openSync(dataDir, 'r');
  } catch (error) {
    throw new CliFailure(
      `${dataDir} can’t be read: ` +
        `${error instanceof Error && 'code' in error ? String(error.code) : String(error)}`,
      ['name the data folder with --data-dir DIR, and run this command as the daemon’s user'],
      { cause: error },
    );
  }
};

const refusalOf = async (answer: IncomingMessage): Promise<string> => {
  let text = '';
  for await (const chunk of answer.setEncoding('utf8') as AsyncIterable<string>)
    text = (text + chunk).slice(0, 4_096);
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null && 'error' in body ? String(body.error) : text;
  } catch {
    return text;
  }
};

/** The whole answer must be small. */
export const commandDaemon = async (
  dataDir: string,
  path: string,
  body: object,
): Promise<Readonly<Record<string, unknown>>> => {
  const answer = await askDaemon(dataDir, path, { signal: AbortSignal.timeout(COMMAND_MS), body });
  let text = '';
  for await (const chunk of answer.setEncoding('utf8') as AsyncIterable<string>) text += chunk;
  return JSON.parse(text) as Readonly<Record<string, unknown>>;
};

const COMMAND_MS = 30_000;
