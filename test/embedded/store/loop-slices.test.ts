import { expect } from 'chai';
import { LoopSlices } from '../../../src/embedded/store/database.ts';

describe('slices of the event loop', () => {
  let now: number;
  let slices: LoopSlices;
  let done: string[];

  beforeEach(() => {
    now = 0;
    done = [];
    slices = new LoopSlices({ now: () => now });
  });

  /** Work that a promise leads to, not the task itself. */
  const task = (name: string, ms: number) => (): void => {
    void Promise.resolve().then(() => {
      now += ms;
      done.push(name);
    });
  };
  const theLoop = (): Promise<void> =>
    new Promise((resolve) => {
      setImmediate(resolve);
    });

  it('yield to the event loop after a few milliseconds of work', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) slices.put(task(name, 2));
    await theLoop();
    expect(done).to.deep.equal(['a', 'b']);
    await theLoop();
    await theLoop();
    expect(done).to.deep.equal(['a', 'b', 'c', 'd', 'e']);
  });

  it('run cheap tasks in one turn', async () => {
    for (let n = 0; n < 300; n += 1) slices.put(task(String(n), 0));
    await theLoop();
    expect(done).to.have.length(300);
  });

  it('run a task at once if none waits', () => {
    slices.put(() => done.push('a'));
    expect(done).to.deep.equal(['a']);
  });

  it('keep the order, including tasks added by tasks and flushed tasks', async () => {
    slices.put(() => {
      done.push('a');
      slices.put(() => done.push('c'));
    });
    slices.put(() => done.push('d'));
    slices.flush();
    expect(done).to.deep.equal(['a', 'c', 'd']);
    slices.put(() => done.push('e'));
    await theLoop();
    expect(done).to.deep.equal(['a', 'c', 'd', 'e']);
  });
});
