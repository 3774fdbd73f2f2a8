import { Child } from './child.ts';
import type { Ask } from './kept-connection.ts';
import type { LoadAnswer, LoadOrder, LoadResult } from './load-protocol.ts';

/** The load process, as figures use it. */
export class Load {
  readonly #child = new Child<LoadOrder, LoadAnswer>('load-process');

  closed(port: number, asks: readonly Ask[], inFlight: number): Promise<LoadResult> {
    return this.#run({ port, asks, mode: { kind: 'closed', inFlight } });
  }

  open(port: number, asks: readonly Ask[], perSecond: number): Promise<LoadResult> {
    return this.#run({ port, asks, mode: { kind: 'open', perSecond } });
  }

  async stop(): Promise<void> {
    await this.#child.stop();
  }

  async #run(order: LoadOrder): Promise<LoadResult> {
    const answer = await this.#child.ask(order);
    if ('failed' in answer) throw new Error(`the load could not be run: ${answer.failed}`);
    return answer.result;
  }
}

/** Throws unless each answer has the status. */
export const expectAll = ({ statuses, bodies }: LoadResult, status: number): void => {
  const wrong = statuses.findIndex((each) => each !== status);
  if (wrong >= 0)
    throw new Error(
      `an answer had status ${statuses[wrong]} instead of ${status}: ${bodies[wrong]?.slice(0, 300)}`,
    );
};
