-- The demo's source database. Idempotent. Nullable columns have no defaults, keys never change.

CREATE TABLE IF NOT EXISTS customers (
    id         bigint PRIMARY KEY,
    name       text NOT NULL,
    email      varchar(200),
    balance    numeric(12, 2) NOT NULL,
    active     boolean NOT NULL,
    profile    jsonb,
    token      uuid,
    created_at timestamptz NOT NULL,
    updated_at timestamp
);

CREATE TABLE IF NOT EXISTS products (
    id       int PRIMARY KEY,
    sku      varchar(40) NOT NULL,
    name     text NOT NULL,
    price    numeric(10, 2) NOT NULL,
    weight   double precision,
    rating   real,
    released date
);

CREATE TABLE IF NOT EXISTS orders (
    id          bigint PRIMARY KEY,
    customer_id bigint NOT NULL,
    status      text NOT NULL,
    total       numeric(14, 2) NOT NULL,
    placed_at   timestamptz NOT NULL,
    note        text,
    ordered_on  date NOT NULL,
    deliver_at  time
);

CREATE TABLE IF NOT EXISTS order_lines (
    order_id   bigint NOT NULL,
    line_no    int NOT NULL,
    product_id int NOT NULL,
    quantity   int NOT NULL,
    price      numeric(10, 2) NOT NULL,
    PRIMARY KEY (order_id, line_no)
);

CREATE TABLE IF NOT EXISTS vouchers (
    code        text PRIMARY KEY,
    percent     smallint NOT NULL,
    valid_until date
);

CREATE TABLE IF NOT EXISTS debezium_signal (
    id   varchar(42) PRIMARY KEY,
    type varchar(32) NOT NULL,
    data varchar(2048)
);
