import { Sandbox } from 'e2b-2-51-0';
import { compatibleId } from '../../src/e2b/sandbox-id.ts';
import { withSandbox, type ClaimedSandbox } from '../claimed-sandbox.ts';
import { COMPATIBLE_FLAGS } from '../daemon.ts';
import type { Bench } from '../figure.ts';

const AN_HOUR_MS = 3_600_000;

export interface ServedSandbox {
  /** As the newest of E2B's SDKs has it. */
  readonly sdk: Sandbox;
  /** The same sandbox by the REST API. */
  readonly rest: ClaimedSandbox;
}

/** Runs with one sandbox that is reached both ways. */
export const withServedSandbox = async <T>(
  bench: Bench,
  run: (served: ServedSandbox) => Promise<T>,
): Promise<T> =>
  await withSandbox(
    bench,
    async (rest) => {
      const url = rest.daemon.compatibleUrl.origin;
      const sdk = await Sandbox.connect(compatibleId(rest.id), {
        apiKey: rest.key,
        apiUrl: url,
        sandboxUrl: url,
        timeoutMs: AN_HOUR_MS,
      });
      return await run({ sdk, rest });
    },
    COMPATIBLE_FLAGS,
  );

/** Asks the REST API by Node's own client, which keeps its connections as that of the SDK does. */
export const byRest = async (
  { id, key, daemon }: ClaimedSandbox,
  path: string,
  { headers, ...init }: RequestInit = {},
): Promise<Response> => {
  const answer = await fetch(`http://127.0.0.1:${daemon.service.port}/sandboxes/${id}/${path}`, {
    ...init,
    headers: { 'SERVICE-API-KEY': key, ...(headers as Readonly<Record<string, string>>) },
  });
  if (!answer.ok)
    throw new Error(
      `${path} was answered ${answer.status}: ${(await answer.text()).slice(0, 300)}`,
    );
  return answer;
};
