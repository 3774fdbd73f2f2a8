import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FrameReader, FRAME_KINDS, encodeMessage } from '../../../src/embedded/spawner/frames.ts';
import { LauncherPool } from '../../../src/embedded/spawner/launcher-pool.ts';
import { readProcessStat } from '../../../src/embedded/spawner/sandbox/process-identity.ts';
import { PROTOCOL, type SpawnerMessage } from '../../../src/embedded/spawner/protocol.ts';
import { Session, type SessionDeps } from '../../../src/embedded/spawner/session.ts';

/** Whose end the spawner has not heard of yet. */
describe('a command for a sandbox about to end', function () {
  let folder: string;
  let launcher: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-dying-'));
    launcher = join(folder, 'launcher');
    // Has no process of its own that would outlive it, and keep its pipes.
    writeFileSync(launcher, '#!/bin/sh\nwhile read -r _ <&3; do :; done\nexit 125\n');
    chmodSync(launcher, 0o755);
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));

  /**
   * What the daemon is told of a command that a launcher could not carry out, in the sandbox of
   * this process.
   */
  const told = async (pid: number): Promise<SpawnerMessage> => {
    const init = { pid, startTime: readProcessStat(pid)?.startTime ?? '1' };
    const launchers = new LauncherPool(() => launcher);
    const deps = {
      daemon: {
        accept: async () => ({
          type: 'hello',
          protocol: PROTOCOL,
          pid: 1,
          isolation: 'prlimit',
          warnings: [],
        }),
        leave: () => {},
        refused: () => {},
        ended: () => {},
      },
      instances: {
        placeOf: () => ({ init, cgroups: [], env: {}, workingDir: '/', bare: undefined }),
      },
      launchers,
      launcherPath: () => launcher,
    } as unknown as SessionDeps;
    const server = createServer((socket) => new Session(socket, deps)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    try {
      return await new Promise<SpawnerMessage>((resolve, reject) => {
        const reader = new FrameReader();
        socket.once('error', reject).on('data', (chunk) => {
          for (const { kind, payload } of reader.feed(chunk)) {
            const message =
              kind === FRAME_KINDS.message
                ? (JSON.parse(String(payload)) as SpawnerMessage)
                : undefined;
            if (message?.type === 'hello')
              socket.write(
                encodeMessage({
                  type: 'exec',
                  channel: 1,
                  id: 'a',
                  argv: ['true'],
                  timeoutMs: 10_000,
                  outputLimit: 10,
                }),
              );
            else if (message) resolve(message);
          }
        });
        socket.write(encodeMessage({ type: 'hello', protocol: PROTOCOL, config: {} }));
      });
    } finally {
      socket.destroy();
      server.close();
      launchers.stop();
    }
  };

  it('fails because the sandbox ended, without an exit code', async () => {
    const dead = spawn('true');
    const pid = dead.pid ?? 0;
    await once(dead, 'exit');
    expect(await told(pid)).to.deep.include({ type: 'refused', gone: true });
  });

  it("returns the launcher's exit code if the sandbox lives", async () => {
    expect(await told(process.pid)).to.deep.include({ type: 'exited', exitCode: 125 });
  });
});
