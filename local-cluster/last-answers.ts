import { withoutSecrets } from './started-processes.ts';

export interface LastRequest {
  readonly port: number;
  readonly method: string;
  readonly path: string;
  readonly answer?: { readonly status: number; readonly text: string };
  readonly error?: Error;
}

/** Most recently used. */
const MOST_CLIENTS = 8;
const SHOWN_LENGTH = 400;

/** Replaces the client's earlier request. */
export const rememberRequest = (client: object, request: LastRequest): void => {
  const requests = shared();
  requests.delete(client);
  requests.set(client, request);
  const [oldest] = requests.keys();
  if (requests.size > MOST_CLIENTS && oldest) requests.delete(oldest);
};

export const forgetAnswers = (): void => shared().clear();

/** The most recent client last; without secrets. */
export const lastAnswers = (): readonly string[] =>
  [...shared().values()].map(({ port, method, path, answer, error }) =>
    withoutSecrets(
      `${method} ${path} on port ${port}: ${
        answer
          ? `${answer.status} ${answer.text.slice(0, SHOWN_LENGTH)}`
          : (error?.message ?? 'no answer yet')
      }`.replaceAll(/\s+/g, ' '),
    ),
  );

/** For the whole process: mocha may load its reporter's modules apart from those of the tests. */
const shared = (): Map<object, LastRequest> => {
  const place = globalThis as { [REQUESTS]?: Map<object, LastRequest> };
  return (place[REQUESTS] ??= new Map<object, LastRequest>());
};

const REQUESTS = Symbol.for('sandpool.last-answers');
