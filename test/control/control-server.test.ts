import { expect } from 'chai';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ControlServer, type ControlDeps } from '../../src/daemon/control/control-server.ts';
import { Deferred } from '../../src/lib/deferred.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';

describe('the control socket', () => {
  let dataDir: string;
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'sandpool-control-'));
  });
  afterEach(() => rmSync(dataDir, { recursive: true }));

  const aServer = (given: Partial<ControlDeps>): ControlServer =>
    new ControlServer({
      dataDir,
      backup: () => Promise.reject(new Error('none')),
      log: quietLog,
      ...given,
    });
  /** Resolves once the connection of what was asked is cut. */
  const ask = async (path: string): Promise<void> => {
    const asked = request({ socketPath: join(dataDir, 'control.sock'), path, method: 'POST' });
    asked.end();
    await once(asked, 'error');
  };
  const someTurns = async (): Promise<void> => {
    for (let turn = 0; turn < 50; turn += 1) await new Promise((next) => setImmediate(next));
  };

  /**
   * What is told in which order where it is stopped while `path` is asked. What is asked says when
   * it has begun, and waits before it ends.
   */
  const toldByStop = async (
    path: string,
    given: (
      begun: () => void,
      goOn: Promise<void>,
      tell: (what: string) => void,
    ) => Partial<ControlDeps>,
  ): Promise<readonly string[]> => {
    const told: string[] = [];
    const tell = (what: string): void => void told.push(what);
    const [begun, goOn] = [new Deferred<void>(), new Deferred<void>()];
    const server = aServer(given(() => begun.resolve(), goOn.promise, tell));
    await server.start();
    const cut = ask(path);
    await begun.promise;
    const stopped = server.stop().then(() => tell('stopped'));
    await cut;
    await someTurns();
    goOn.resolve();
    await stopped;
    return told;
  };

  it('stops once its running commands are done', async () => {
    const told = await toldByStop('/write', (begun, goOn, tell) => ({
      commands: {
        '/write': async () => {
          begun();
          await goOn;
          tell('written');
          return { status: 200, body: {} };
        },
      },
    }));

    expect(told).to.deep.equal(['written', 'stopped']);
  });

  it('stops once a cancelled backup has ended', async () => {
    const told = await toldByStop('/backup', (begun, goOn, tell) => ({
      backup: async (signal) => {
        begun();
        await once(signal, 'abort');
        await goOn;
        tell('called off');
        throw signal.reason;
      },
    }));

    expect(told).to.deep.equal(['called off', 'stopped']);
  });

  it('is not opened if the daemon was stopped earlier', async () => {
    const server = aServer({});
    await server.stop();
    await server.start();
    const isThere = existsSync(join(dataDir, 'control.sock'));
    await server.stop();

    expect(isThere).to.equal(false);
  });
});
