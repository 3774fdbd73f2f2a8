import { expect } from 'chai';
import type { OngoingTrace } from '../../src/contracts/tracing.ts';
import { AsyncScope } from '../../src/lib/async-scope.ts';

const aTrace = (): OngoingTrace => ({ call: () => ({ traceparent: '', ended: () => undefined }) });
const turn = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

describe('the scope of a request', () => {
  it('covers all work of a request, with any number at a time', async () => {
    const scope = new AsyncScope<OngoingTrace>();
    const [one, other] = [aTrace(), aTrace()];
    const seen: boolean[] = [];
    const work = (own: OngoingTrace) => async (): Promise<void> => {
      for (let step = 0; step < 3; step += 1) {
        seen.push(scope.current() === own);
        await turn();
      }
    };
    await Promise.all([scope.within(one, work(one)), scope.within(other, work(other))]);

    expect(seen).to.deep.equal([true, true, true, true, true, true]);
    expect(scope.current()).to.equal(undefined);
  });

  it('excludes work that a request leaves behind, however it ended', async () => {
    for (const end of [
      () => undefined,
      () => {
        throw new Error('it failed');
      },
    ]) {
      const scope = new AsyncScope<OngoingTrace>();
      let over = (): void => undefined;
      const settled = new Promise<void>((resolve) => {
        over = resolve;
      });
      let left: Promise<OngoingTrace | undefined> | undefined;
      await scope
        .within(aTrace(), async () => {
          left = settled.then(() => scope.current());
          end();
        })
        .catch(() => undefined);
      over();

      expect(await left).to.equal(undefined);
    }
  });
});
