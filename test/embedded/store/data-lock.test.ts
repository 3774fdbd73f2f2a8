import { expect } from 'chai';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { DataDirTaken, lockDataDir } from '../../../src/embedded/store/data-lock.ts';
import { aFolder } from './a-database.ts';
import { aWriter } from './a-writer.ts';

describe('the lock of the data folder', () => {
  let folder: string;
  beforeEach(() => {
    folder = aFolder();
  });
  afterEach(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  it('belongs to one process until that process is killed', async function () {
    const other = await aWriter(join(folder, 'sandpool.db'));

    expect(() => lockDataDir(folder))
      .to.throw(DataDirTaken)
      .with.property('message')
      .that.includes(folder)
      .and.includes('already runs');
    await other.kill();

    lockDataDir(folder).release();
  });

  it('is exclusive within a process, and free again once released', () => {
    const lock = lockDataDir(folder);

    expect(() => lockDataDir(folder)).to.throw(DataDirTaken);
    lock.release();
    lock.release();

    lockDataDir(folder).release();
  });

  it('survives the garbage collector', async () => {
    lockDataDir(folder);

    for (let turn = 0; turn < 3; turn++) {
      collectGarbage();
      await nextTurn(); // finalizers run between turns
    }

    expect(() => lockDataDir(folder)).to.throw(DataDirTaken);
  });

  it('reports a missing folder clearly', () => {
    expect(() => lockDataDir(join(folder, 'absent')))
      .to.throw(Error)
      .and.not.instanceOf(DataDirTaken);
  });
});

/** A full collection, in a process that was not started for it. */
const collectGarbage = (): void => {
  setFlagsFromString('--expose-gc');
  const gc: unknown = runInNewContext('gc');
  if (typeof gc === 'function') gc();
};
