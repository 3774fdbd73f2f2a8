import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { ImageRefused } from '../../../src/embedded/images/unpacker/image-refused.ts';
import { readOciImage, type OciImage } from '../../../src/embedded/images/unpacker/oci-layout.ts';
import {
  digestOf,
  MANIFEST,
  plainLayer,
  REF_NAME,
  TAR,
  writeLayout,
  type LayoutParts,
} from '../../support/builders/an-oci-layout.ts';
import { rejection } from '../../support/harness/rejection.ts';

const PLATFORM = { os: 'linux', architecture: 'amd64' };

describe('an OCI layout', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-layout-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const write = (parts: LayoutParts = {}): string =>
    writeLayout(folder, {
      architecture: 'amd64',
      layers: [plainLayer(Buffer.alloc(1_024))],
      ...parts,
    });
  const read = (wanted: { tag?: string; digest?: string } = {}): Promise<OciImage> =>
    readOciImage(folder, wanted, PLATFORM);
  const refusal = async (wanted: { tag?: string; digest?: string } = {}): Promise<string> => {
    const error = await rejection(read(wanted));
    expect(error, String(error)).to.be.instanceOf(ImageRefused);
    expect((error as Error).message).to.not.include(folder);
    return (error as Error).message;
  };
  const edit = (change: (index: { manifests: Record<string, unknown>[] }) => void): void => {
    const index = JSON.parse(readFileSync(join(folder, 'index.json'), 'utf8')) as {
      manifests: Record<string, unknown>[];
    };
    change(index);
    writeFileSync(join(folder, 'index.json'), JSON.stringify(index));
  };
  /** A document as a blob, with its descriptor. */
  const blob = (
    mediaType: string,
    document: unknown,
  ): { mediaType: string; digest: string; size: number } => {
    const bytes = Buffer.from(JSON.stringify(document));
    writeFileSync(join(folder, 'blobs/sha256', digestOf(bytes).slice(7)), bytes);
    return { mediaType, digest: digestOf(bytes), size: bytes.length };
  };

  it('returns the image of a tag, of a digest, or the only one', async () => {
    const digest = write({ tags: ['1.0'] });
    for (const wanted of [{}, { tag: '1.0' }, { digest }])
      expect((await read(wanted)).digest).to.equal(digest);
    expect(await refusal({ tag: '2.0' })).to.equal(
      'the layout contains no image 2.0; it has "1.0"',
    );
    expect(await refusal({ digest: digestOf(Buffer.from('')) })).to.include(
      'the layout contains no image sha256:',
    );
  });

  it('with several images returns latest, or requires a tag', async () => {
    write({ tags: ['a'] });
    edit((index) => {
      index.manifests.push({ ...blob(MANIFEST, {}), annotations: { [REF_NAME]: 'b' } });
    });
    expect(await refusal()).to.equal(
      'the layout contains several images, so a tag is needed; it has "a", "b"',
    );
    edit((index) => {
      index.manifests[0] = { ...index.manifests[0], annotations: { [REF_NAME]: 'latest' } };
    });
    expect((await read()).layers).to.have.lengthOf(1);
  });

  it('for several platforms returns the image for this machine, even from a nested index', async () => {
    const digest = write();
    edit((index) => {
      const ours = { ...index.manifests[0], platform: { os: 'linux', architecture: 'amd64' } };
      const theirs = {
        ...blob(MANIFEST, { of: 'arm' }),
        platform: { os: 'linux', architecture: 'arm64' },
      };
      const attestation = {
        ...blob(MANIFEST, { of: 'attestation' }),
        platform: { os: 'unknown', architecture: 'unknown' },
      };
      index.manifests = [
        blob('application/vnd.oci.image.index.v1+json', {
          schemaVersion: 2,
          manifests: [theirs, ours, attestation],
        }),
      ];
    });
    expect((await read()).digest).to.equal(digest);
  });

  it('is refused without an image for this machine', async () => {
    write({ architecture: 'riscv64' });
    expect(await refusal()).to.equal('it is for "linux/riscv64", and this machine is linux/amd64');
    edit((index) => {
      index.manifests[0] = {
        ...index.manifests[0],
        platform: { os: 'windows', architecture: 'amd64' },
      };
    });
    expect(await refusal()).to.equal('it has no image for this machine, linux/amd64');
  });

  it('is refused if it is malformed or incomplete', async () => {
    expect(await refusal()).to.equal('oci-layout is missing');
    write();
    writeFileSync(join(folder, 'oci-layout'), '{"imageLayoutVersion":"2.0.0"}');
    expect(await refusal()).to.equal('oci-layout: imageLayoutVersion must be 1.0.0');
    const digest = write();
    unlinkSync(join(folder, 'blobs/sha256', digest.slice(7)));
    expect(await refusal()).to.equal('the manifest is missing');
    unlinkSync(join(folder, 'index.json'));
    expect(await refusal()).to.equal('index.json is missing');
    mkdirSync(join(folder, 'index.json'));
    expect(await refusal()).to.equal('index.json is not a regular file');
    rmSync(join(folder, 'index.json'), { recursive: true });
    execFileSync('mkfifo', [join(folder, 'index.json')]);
    expect(await refusal()).to.equal('index.json is not a regular file');
  });

  it('is refused if a document does not match its digest', async () => {
    const digest = write();
    const path = join(folder, 'blobs/sha256', digest.slice(7));
    const bytes = readFileSync(path);
    writeFileSync(path, Buffer.concat([bytes.subarray(0, -1), Buffer.from(' ')]));
    expect(await refusal()).to.equal('the manifest does not match its digest');
    writeFileSync(path, Buffer.concat([bytes, Buffer.from(' ')]));
    expect(await refusal()).to.equal(
      `the manifest has ${bytes.length + 1} bytes instead of ${bytes.length}`,
    );
  });

  it('is refused if a document is too large, too deep or of another kind', async () => {
    write();
    const index = join(folder, 'index.json');
    writeFileSync(index, Buffer.alloc((4 << 20) + 1, ' '));
    expect(await refusal()).to.equal(`index.json is larger than ${4 << 20} bytes`);
    writeFileSync(index, '['.repeat(1_000_000) + ']'.repeat(1_000_000));
    expect(await refusal()).to.match(/^index\.json/);
    writeFileSync(
      index,
      `{"schemaVersion":2,"manifests":[],"annotations":${'{"a":'.repeat(300_000)}1${'}'.repeat(300_000)}}`,
    );
    expect(await refusal()).to.match(/index\.json is not JSON|the layout contains no image/);
    for (const text of [
      '',
      '{',
      'null',
      '[]',
      '{"schemaVersion":1,"manifests":[]}',
      '{"schemaVersion":2}',
      '{"schemaVersion":2,"manifests":[{}]}',
    ]) {
      writeFileSync(index, text);
      expect(await refusal(), text).to.match(/^index\.json/);
    }
    writeFileSync(index, Buffer.from([0x7b, 0xff, 0x7d]));
    expect(await refusal()).to.equal('index.json is not JSON');
  });

  it('cannot name a blob by a path', async () => {
    write({
      manifest: { layers: [{ mediaType: TAR, digest: 'sha256:../../../../etc/passwd', size: 1 }] },
    });
    expect(await refusal()).to.include('must be a sha256 digest');
    write({ descriptor: { digest: 'sha256:/../../../etc/passwd' } });
    expect(await refusal()).to.include('must be a sha256 digest');
  });

  it('is refused if it contains something else than an image, or inconsistent parts', async () => {
    write({ descriptor: { mediaType: 'application/vnd.oci.artifact.manifest.v1+json' } });
    expect(await refusal()).to.include('which is not supported');
    write({
      manifest: {
        config: {
          mediaType: 'application/vnd.cncf.helm.config.v1+json',
          digest: digestOf(Buffer.from('')),
          size: 0,
        },
      },
    });
    expect(await refusal()).to.include('it contains no image to run');
    write({ manifest: { layers: [] } });
    expect(await refusal()).to.equal('it has 0 layers, and digests of 1');
    write({
      layers: [
        {
          bytes: Buffer.from(''),
          mediaType: 'application/vnd.docker.image.rootfs.foreign.diff.tar.gzip',
        },
      ],
    });
    expect(await refusal()).to.include('layer 1 has the type');
  });

  it('is refused if its index refers to a missing blob', async () => {
    write();
    const INDEX = 'application/vnd.oci.image.index.v1+json';
    let inner = blob(INDEX, { schemaVersion: 2, manifests: [] });
    for (let depth = 0; depth < 5; depth += 1)
      inner = blob(INDEX, { schemaVersion: 2, manifests: [inner] });
    edit((index) => {
      index.manifests = [inner];
    });
    expect(await refusal()).to.equal('its indexes are nested too deeply');
  });
});
