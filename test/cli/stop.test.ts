import { expect } from 'chai';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readPidFile } from '../../src/daemon/process/pid-file.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import { cliHere } from './cli-support.ts';

const NOTE = fileURLToPath(new URL('../../src/daemon/process/pid-file.ts', import.meta.url));

describe('sandpool stop', function () {
  let dataDir: string;
  let daemon: ChildProcess | undefined;
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'sandpool-stop-'));
  });
  afterEach(async () => {
    if (daemon?.exitCode === null && daemon.signalCode === null) {
      const ended = once(daemon, 'exit');
      daemon.kill('SIGKILL');
      await ended;
    }
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
  });

  /**
   * A process that notes itself as the daemon of the folder and, told to stop, takes a moment for
   * it.
   */
  const start = async (): Promise<ChildProcess> => {
    const code = `import { writePidFile } from ${JSON.stringify(NOTE)};
      process.on('SIGTERM', () => setTimeout(() => { process.stdout.write('ended in order'); process.exit(0); }, 300));
      setInterval(() => {}, 1000);
      writePidFile(${JSON.stringify(dataDir)}, 'http://127.0.0.1:1');
      process.stdout.write('ready');`;
    const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', code], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    daemon = child;
    await once(child.stdout, 'data');
    return child;
  };

  it('stops the daemon and waits for its end', async () => {
    const child = await start();
    const exited = once(child, 'exit');
    const said = once(child.stdout ?? child, 'data');
    const end = await cliHere(['stop'], { SANDPOOL_DATA_DIR: dataDir });
    expect(readPidFile(dataDir), 'it has gone when the command ends').to.equal(undefined);
    expect(end).to.deep.equal({
      code: 0,
      stdout: `the daemon (pid ${child.pid}) has stopped\n`,
      stderr: '',
    });
    expect(await exited).to.deep.equal([0, null]);
    expect(String((await said)[0])).to.equal('ended in order');
  });

  it('does nothing without a daemon', async () => {
    const end = await cliHere(['stop', '--data-dir', dataDir]);
    expect(end).to.deep.equal({
      code: 0,
      stdout: `no daemon is running on ${dataDir}\n`,
      stderr: '',
    });
  });

  it("reports that the folder is another user's, before it stops anything", async function () {
    if (process.getuid?.() !== 0) skipBecause(this, 'needs root');
    await start();
    chownSync(dataDir, 65_534, 65_534);
    const end = await cliHere(['stop', '--all', '--data-dir', dataDir]);
    expect(end.stderr).to.equal(
      `sandpool: ${dataDir} belongs to another user (uid 65534)\n  end its sandboxes as that user; nothing was stopped\n`,
    );
    expect([end.code, end.stdout]).to.deep.equal([1, '']);
    expect(readPidFile(dataDir), 'it runs').to.not.equal(undefined);
  });

  it("never signals another process that has reused the daemon's pid", async () => {
    const child = await start();
    const file = join(dataDir, 'daemon.json');
    const note = JSON.parse(readFileSync(file, 'utf8'));
    for (const wrong of [
      { startTime: String(Number(note.startTime) - 1) },
      { bootId: '00000000-0000-0000-0000-000000000000' },
    ]) {
      writeFileSync(file, JSON.stringify({ ...note, ...wrong }));
      expect((await cliHere(['stop'], { SANDPOOL_DATA_DIR: dataDir })).stdout).to.include(
        'no daemon is running',
      );
    }
    writeFileSync(file, JSON.stringify(note));
    expect(
      (await cliHere(['stop'], { SANDPOOL_DATA_DIR: dataDir })).stdout,
      'it was there all the time',
    ).to.include(`pid ${child.pid}`);
  });
});
