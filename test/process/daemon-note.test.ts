import { expect } from 'chai';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readPidFile, removePidFile, writePidFile } from '../../src/daemon/process/pid-file.ts';

describe('daemon.json', () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-note-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const change = (part: object): void => {
    const file = join(folder, 'daemon.json');
    writeFileSync(
      file,
      JSON.stringify({ ...(JSON.parse(readFileSync(file, 'utf8')) as object), ...part }),
    );
  };

  it('shows the address of the running daemon, until it stops', () => {
    expect(readPidFile(folder)).to.equal(undefined);

    writePidFile(folder, 'http://127.0.0.1:8080');
    expect(readPidFile(folder)).to.include({
      address: 'http://127.0.0.1:8080',
      pid: process.pid,
    });

    removePidFile(folder);
    expect(readPidFile(folder)).to.equal(undefined);
  });

  it('counts as absent when its daemon is dead, even if the pid was reused', () => {
    writePidFile(folder, 'http://127.0.0.1:8080');

    change({ startTime: '1' });
    expect(readPidFile(folder)).to.equal(undefined);
    writePidFile(folder, 'http://127.0.0.1:8080');
    change({ bootId: 'another' });
    expect(readPidFile(folder)).to.equal(undefined);
    writePidFile(folder, 'http://127.0.0.1:8080');
    change({ pid: 2 ** 22 + 1 });
    expect(readPidFile(folder)).to.equal(undefined);
  });

  it('counts as absent when it is malformed', () => {
    for (const text of [
      '',
      '{',
      '[]',
      '{"address":"file:///etc/passwd","pid":1,"startTime":"1"}',
    ]) {
      writeFileSync(join(folder, 'daemon.json'), text);
      expect(readPidFile(folder)).to.equal(undefined);
    }
  });
});
