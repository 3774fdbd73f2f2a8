import type { Pool, Sandbox } from '../client/wire.ts';

type Imaged = Pick<Pool | Sandbox, 'containerImages'>;
type Shaped = Pick<Pool, 'containerImages' | 'network' | 'ports' | 'ephemeralStorage'>;

export const imageFields = ({ containerImages }: Imaged): readonly (readonly [string, string])[] =>
  Object.entries(containerImages ?? {}).map(([name, image]) => [`image of ${name}`, image]);

const portsOf = ({ ports }: Shaped): string =>
  Object.entries(ports ?? {})
    .map(([name, port]) => `${name}:${port}`)
    .join(',');

export const shapeFields = (shaped: Shaped): readonly (readonly [string, string | undefined])[] => [
  ...imageFields(shaped),
  ['network', shaped.network],
  ['ports', portsOf(shaped)],
  ['disk', shaped.ephemeralStorage],
];

export const imageColumn = {
  heading: 'IMAGE',
  of: ({ containerImages }: Imaged): string => Object.values(containerImages ?? {}).join(','),
  wide: true,
} as const;

export const SHAPE = [
  imageColumn,
  { heading: 'NETWORK', of: ({ network }: Shaped) => network, wide: true },
  { heading: 'PORTS', of: portsOf, wide: true },
  { heading: 'DISK', of: ({ ephemeralStorage }: Shaped) => ephemeralStorage, wide: true },
] as const;
